import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { repository } from '@onetrip/stack/places.ts'
import { afterAll, beforeAll, expect, inject, test, vi } from 'vitest'
import { outputOf } from './command.ts'
import { Stack } from './stack.ts'

const PASSWORD = 'correct horse battery staple'

let stack: Stack
let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'onetrip-users-'))
  const setPassword = 'node apps/api/src/passwords/set-password.ts /users/users.txt ada'
  const script = `echo '${PASSWORD}' | ${setPassword} && chown 1000 /users/users.txt`
  const run = ['docker', 'run', '--rm', '--user', 'root', '-v', `${folder}:/users`]
  await outputOf([...run, 'onetrip-api', 'sh', '-c', script])
  vi.stubEnv('USERS_FILE', join(folder, 'users.txt'))
  const override = await readFile(join(repository, 'docker/password.yml'), 'utf8')
  stack = await Stack.create(inject('compose'), override)
  await stack.up()
})

afterAll(async () => {
  expect(await stack.down()).toEqual([])
  vi.unstubAllEnvs()
  await rm(folder, { recursive: true })
})

async function logIn(url: string, credentials: object): Promise<Response> {
  return await fetch(`${url}/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(credentials),
  })
}

test('in production, users in USERS_FILE log in to both APIs with their passwords', async () => {
  for (const url of [stack.urls.pooled, stack.urls.naive]) {
    const answer = await logIn(url, { user: 'ada', password: PASSWORD })
    expect(answer.status).toBe(200)
    expect(answer.headers.get('set-cookie')).toMatch(/^__Host-onetrip=.*; Secure/)
    expect((await logIn(url, { user: 'ada', password: 'wrong password' })).status).toBe(401)
    expect((await logIn(url, { user: 'eve', password: PASSWORD })).status).toBe(401)
    expect((await logIn(url, { user: 'ada' })).status).toBe(400)
  }
})
