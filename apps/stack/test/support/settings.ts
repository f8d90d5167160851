import type { StartSettings } from '../../src/start/settings.ts'

/** The settings of `npm start` without options, with `ONETRIP_STATE=/state`. */
export const defaultSettings: StartSettings = {
  host: '127.0.0.1',
  port: 3000,
  naivePort: 3001,
  race: true,
  installed: null,
  redis: {
    kind: 'own',
    build: 'patched',
    transport: 'tcp',
    port: 6390,
    run: '/state/run',
    secrets: '/state/redis/secrets',
    directory: '/state/redis/data/patched',
  },
}
