import { expect, test } from 'vitest'
import { missingToolsMessage, type System } from '../src/toolchain.ts'

const linux: System = { platform: 'linux', distributions: [], root: false }

test.each([
  [['debian'], true, '\n    apt-get install -y build-essential git\n'],
  [['ubuntu', 'debian'], false, '\n    sudo apt-get install -y build-essential git\n'],
  [['rocky', 'rhel', 'centos', 'fedora'], true, '\n    dnf install -y gcc gcc-c++ make git\n'],
  [['alpine'], true, '\n    apk add build-base linux-headers git\n'],
  [['plan9'], true, 'with the package manager of your system'],
])('on %j (root: %j), prints how to install the tools', (distributions, root, expected) => {
  expect(missingToolsMessage(['cc'], { ...linux, distributions, root })).toContain(expected)
})

test('on macOS, prints how to install the tools', () => {
  const message = missingToolsMessage(['cc', 'make'], { ...linux, platform: 'darwin' })
  expect(message).toContain('cc, make cannot be run')
  expect(message).toContain('xcode-select --install')
})

test('names the installed redis-server', () => {
  const message = missingToolsMessage(['cc'], { ...linux, redisServer: '/usr/bin/redis-server' })
  expect(message).toContain('REDIS_SERVER=/usr/bin/redis-server npm start')
})
