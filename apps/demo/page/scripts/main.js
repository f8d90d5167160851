import { startAccount } from './account.js'
import { call, onOutage } from './api.js'
import { byId, notice } from './dom.js'
import { sentence } from './format.js'
import { startServer } from './server.js'
import { startSettings } from './settings.js'
import { startShop } from './shop.js'

const messages = {
  api: 'The API does not answer. This page retries until the API is back.',
  redis: 'Redis does not answer. This page retries until Redis is back.',
}
onOutage((outage) => {
  notice(byId('outage', HTMLElement), outage === null ? '' : messages[outage])
})

/** Reads the features of this API and starts the sections for them. Retries until the API answers. */
async function startDemo(waitMs = 1_000) {
  const demo = await call('GET', '/demo').catch(() => undefined)
  if (demo === undefined) {
    setTimeout(startDemo, waitMs, Math.min(waitMs * 2, 15_000))
    return
  }
  for (const element of document.querySelectorAll('.needs-race')) {
    const isThere = demo.race !== null && (demo.race.wire || !element.matches('.needs-wire'))
    if (element instanceof HTMLElement) element.hidden = !isThere
  }
  if (demo.repository) {
    const link = byId('repository', HTMLAnchorElement)
    link.href = demo.repository.replace(/^git\+|\.git$/g, '')
    link.hidden = false
  }
  notice(byId('no-race', HTMLElement), demo.race === null ? sentence(demo.why) : '')
  if (demo.race === null) {
    setTimeout(startDemo, 15_000) // another instance, with a demo service, may answer next time
    return
  }
  startSettings(demo.race)
  // Imported late: uPlot is most of the page's bytes.
  const [{ startRace }, { startWire }] = await Promise.all([
    import('./race.js'),
    import('./wire.js'),
  ])
  startRace(demo.race)
  if (demo.race.wire) startWire()
}

startShop()
startServer()
void startAccount()
void startDemo()
