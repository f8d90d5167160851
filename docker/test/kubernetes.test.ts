import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { repository } from '@onetrip/stack/places.ts'
import type { IDeployment } from 'kubernetes-models/apps/v1'
import { expect, onTestFinished, test } from 'vitest'
import { parseAllDocuments } from 'yaml'

const read = (path: string) => readFileSync(join(repository, path), 'utf8')
const manifests = parseAllDocuments(read('docker/kubernetes/onetrip.yaml')).map((document) => {
  expect(document.errors).toEqual([])
  return document.toJS()
})
const byKind = (kind: string) => manifests.find((manifest) => manifest.kind === kind)

test('the manifests are valid, and have only fields that Kubernetes and the Gateway API know', async () => {
  expect(manifests.map(({ kind }) => kind)).toEqual([
    'Deployment',
    'Service',
    'HorizontalPodAutoscaler',
    'HTTPRoute',
    'HTTPRoute',
    'PodDisruptionBudget',
    'NetworkPolicy',
  ])
  // The types refuse unknown fields, and the schemas wrong values.
  await mkdir(join(repository, '.onetrip'), { recursive: true })
  const folder = await mkdtemp(join(repository, '.onetrip/kubernetes-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const lines = manifests.flatMap(({ apiVersion, kind, ...rest }, index) => {
    const gateway = apiVersion.startsWith('gateway.')
    const models = gateway ? '@kubernetes-models/gateway-api' : 'kubernetes-models'
    return [
      `import { ${kind} as Kind${index} } from '${models}/${apiVersion}'`,
      `new Kind${index}(${JSON.stringify(rest)}).validate()`,
    ]
  })
  const file = join(folder, 'manifests.mts')
  await writeFile(file, lines.join('\n'))
  const compiler = join(repository, 'node_modules/.bin/tsc')
  const modules = ['--module', 'esnext', '--moduleResolution', 'bundler', '--types', '']
  const options = ['--ignoreConfig', '--noEmit', '--strict', '--skipLibCheck', ...modules, file]
  const errors = (error: { stdout: string; stderr: string }) => error
  const { stdout } = await promisify(execFile)(compiler, options).catch(errors)
  expect(stdout).toBe('')
  const { stderr } = await promisify(execFile)(process.execPath, [file]).catch(errors)
  expect(stderr).toBe('')
})

const deployment = byKind('Deployment') as IDeployment
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

test('everything refers to the Deployment, its pods and its Service', () => {
  const labels = deployment.spec?.template.metadata?.labels
  expect(deployment.spec?.selector.matchLabels).toEqual(labels)
  expect(byKind('Service').spec.selector).toEqual(labels)
  expect(byKind('PodDisruptionBudget').spec.selector.matchLabels).toEqual(labels)
  expect(byKind('NetworkPolicy').spec.podSelector.matchLabels).toEqual(labels)
  const { name } = deployment.metadata ?? {}
  const { apiVersion, kind } = deployment
  expect(byKind('HorizontalPodAutoscaler').spec.scaleTargetRef).toEqual({ apiVersion, kind, name })
  expect(deployment.spec).not.toHaveProperty('replicas') // `kubectl apply` would undo the autoscaler
  const [{ backendRefs, matches }] = byKind('HTTPRoute').spec.rules
  const service = byKind('Service')
  const [{ port }] = service.spec.ports
  expect(backendRefs).toEqual([{ name: service.metadata.name, port }])
  const paths: string[] = matches.map(({ path }: { path: { value: string } }) => path.value)
  expect(paths).toContain('/login')
  expect(paths.filter((path) => '/metrics/'.startsWith(join(path, '/')))).toEqual([])
})
