import { expect, test } from 'vitest'
import { failedStart } from '../../api/test/api-process.ts'
import { demoProgram } from './support.ts'

test('the demo does not start in production', async () => {
  const { code, stderr } = await failedStart({ NODE_ENV: 'production' }, demoProgram)
  expect(code).toBe(1)
  expect(stderr).toContain('NODE_ENV=production')
})
