import { existsSync } from 'node:fs'
import { copyFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { repository } from '@onetrip/stack/places.ts'
import type { TestProject } from 'vitest/node'
import { outputOf } from './command.ts'
import { authoritiesOfNpm, CannotRun, composeCommand, requireEngine } from './engine.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    /** The command of Compose, such as `docker compose`. */
    compose: string[]
  }
}

const builds = ['stock', 'patched']

/** Prepares an engine and our images. The first run takes some minutes. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const cleanup = new AsyncDisposableStack()
  try {
    cleanup.defer(await requireEngine())
    const compose = await composeCommand()
    cleanup.defer(await extraAuthorities())
    for (const build of builds) {
      process.stdout.write(`Building the images (Redis ${build})\n`)
      const services = build === 'patched' ? ['redis', 'api', 'proxy', 'load'] : ['redis']
      await outputOf([...compose, 'build', ...services], {
        env: {
          ...process.env,
          COMPOSE_FILE: join(repository, 'docker-compose.yml'),
          REDIS_BUILD: build,
        },
        show: process.stdout.isTTY,
      })
    }
    project.provide('compose', compose)
    return () => cleanup.disposeAsync()
  } catch (error) {
    await cleanup.disposeAsync()
    // The message is for the user who runs the tests: no stack trace.
    if (error instanceof CannotRun) error.stack = error.message
    throw error
  }
}

/** Behind a TLS proxy, builds need its certificate authority, as npm does (docs/containers.md). */
async function extraAuthorities(): Promise<() => Promise<void>> {
  const target = join(repository, 'docker', 'extra-ca.pem')
  const authorities = await authoritiesOfNpm()
  if (authorities === undefined || existsSync(target)) return async () => {}
  await copyFile(authorities, target)
  return () => rm(target, { force: true })
}
