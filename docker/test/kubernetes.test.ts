import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { repository } from '@onetrip/stack/places.ts'
import type { Deployment } from 'kubernetes-types/apps/v1.d.ts'
import { expect, onTestFinished, test } from 'vitest'
import { parseAllDocuments } from 'yaml'

const read = (path: string) => readFileSync(join(repository, path), 'utf8')
const manifests = parseAllDocuments(read('docker/kubernetes/onetrip.yaml')).map((document) => {
  expect(document.errors).toEqual([])
  return document.toJS()
})
const byKind = (kind: string) => manifests.find((manifest) => manifest.kind === kind)

/** The module with the types of each kind; they are generated from the OpenAPI document of Kubernetes. */
const types: Record<string, string> = {
  'apps/v1 Deployment': 'apps/v1',
  'v1 Service': 'core/v1',
  'policy/v1 PodDisruptionBudget': 'policy/v1',
  'networking.k8s.io/v1 NetworkPolicy': 'networking/v1',
}

test('the manifests have only fields that Kubernetes knows', async () => {
  const kinds = manifests.map(({ apiVersion, kind }) => `${apiVersion} ${kind}`)
  expect(kinds).toEqual(Object.keys(types))
  const folder = await mkdtemp(join(repository, 'node_modules/.kubernetes-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const file = join(folder, 'manifests.ts')
  const lines = manifests.map((manifest, index) => {
    const { apiVersion, kind } = manifest
    const type = `import('kubernetes-types/${types[`${apiVersion} ${kind}`]}').${kind}`
    return `export const manifest${index}: ${type} = ${JSON.stringify(manifest)}`
  })
  await writeFile(file, lines.join('\n'))
  const compiler = join(repository, 'node_modules/.bin/tsc')
  const modules = ['--module', 'esnext', '--moduleResolution', 'bundler', '--types', '']
  const options = ['--ignoreConfig', '--noEmit', '--strict', ...modules, file]
  const { stdout } = await promisify(execFile)(compiler, options).catch((error) => error)
  expect(stdout).toBe('')
})

const deployment = byKind('Deployment') as Deployment
const pod = deployment.spec?.template.spec
const [api] = pod?.containers ?? []
const settings = new Map(api?.env?.map(({ name, value = '' }) => [name, value]))

test('every setting exists in the API, and a pod is killed only after it has drained', () => {
  const known = [...read('apps/api/.env.example').matchAll(/^(\w+)=/gm)].map(([, name]) => name)
  const own = ['USERS_DATABASE'] // of examples/applications/own-login
  for (const name of settings.keys()) expect([...known, ...own]).toContain(name)
  const drain = Number(settings.get('SHUTDOWN_DRAIN_MS'))
  expect(pod?.terminationGracePeriodSeconds).toBeGreaterThan(drain / 1_000 + 10 + 5)
  const { periodSeconds = 10, failureThreshold = 3, timeoutSeconds = 1 } = api?.readinessProbe ?? {}
  expect(drain / 1_000).toBeGreaterThanOrEqual(periodSeconds * failureThreshold + timeoutSeconds)
})

test('no root, no writable image, no capability; secrets are files', () => {
  expect(pod).toMatchObject({
    automountServiceAccountToken: false,
    securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
  })
  expect(api?.securityContext).toEqual({
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ['ALL'] },
  })
  const mounts = api?.volumeMounts?.map(({ mountPath }) => mountPath) ?? []
  const files = [...settings].filter(([name]) => /_(FILE|DATABASE)$/.test(name))
  expect(files).toHaveLength(3)
  for (const [, path] of files) expect(mounts).toContain(path.replace(/\/[^/]+$/, ''))
  expect(pod?.volumes?.every(({ secret }) => secret !== undefined)).toBe(true)
})

test('Service, PodDisruptionBudget and NetworkPolicy select the pods of the Deployment', () => {
  const labels = deployment.spec?.template.metadata?.labels
  expect(deployment.spec?.selector.matchLabels).toEqual(labels)
  expect(byKind('Service').spec.selector).toEqual(labels)
  expect(byKind('PodDisruptionBudget').spec.selector.matchLabels).toEqual(labels)
  expect(byKind('NetworkPolicy').spec.podSelector.matchLabels).toEqual(labels)
})
