import { expect, test } from 'vitest'
import { withoutEngine } from './firewall.ts'

// The rules that Docker 20.10 leaves behind when it is killed.
const nat = `*nat
:PREROUTING ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
:DOCKER - [0:0]
-A PREROUTING -m addrtype --dst-type LOCAL -j DOCKER
-A POSTROUTING -s 172.17.0.0/16 ! -o docker0 -j MASQUERADE
-A POSTROUTING -s 172.18.0.0/16 ! -o br-0123456789ab -j MASQUERADE
-A DOCKER -i docker0 -j RETURN
COMMIT`
const filter = (own: string) => `*filter
:INPUT ACCEPT [0:0]
:FORWARD DROP [0:0]
:DOCKER - [0:0]
:DOCKER-USER - [0:0]
-A FORWARD -j DOCKER-USER
-A FORWARD -o docker0 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
${own}-A DOCKER-USER -j RETURN
COMMIT`
const OWN = '-A INPUT -p tcp -m tcp --dport 23 -j DROP\n'

test('removes the rules of a killed engine and keeps all others', () => {
  expect(withoutEngine(`# Generated\n${nat}\n# Completed\n${filter('')}\n`)).toBe('')
  expect(withoutEngine(`${nat}\n${filter(OWN)}\n`)).toBe(
    `*filter\n:INPUT ACCEPT [0:0]\n:FORWARD DROP [0:0]\n${OWN}COMMIT\n`,
  )
  const others = '*mangle\n:INPUT ACCEPT [0:0]\nCOMMIT\n'
  expect(withoutEngine(others)).toBe(others)
  expect(withoutEngine('')).toBe('')
})
