import { startAccount } from './account.js'
import { onOutage } from './api.js'
import { byId, notice } from './dom.js'
import { startShop } from './shop.js'

const words = {
  api: 'The API does not answer. This page keeps trying; it goes on by itself when the API is back.',
  redis: 'Redis does not answer. This page keeps trying; it goes on by itself when Redis is back.',
}
onOutage((outage) => {
  byId('outage', HTMLElement).hidden = outage === null
  notice(byId('outage-text', HTMLElement), outage === null ? '' : words[outage])
})

startShop()
void startAccount()
