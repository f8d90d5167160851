import { serve } from '@onetrip/api'
import { demoApplication, demoOptions } from './application.ts'

await serve(() => demoApplication(demoOptions()))
