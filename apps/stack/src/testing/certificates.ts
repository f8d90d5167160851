import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** The name in the server's certificate, which is also valid for 127.0.0.1 and localhost. */
export const SERVER_NAME = 'redis.test'

export interface Certificate {
  certFile: string
  keyFile: string
  cert: string
  key: string
}

/**
 * Generates a certificate authority, and certificates of servers and a client, in a folder. Needs openssl.
 */
export function makeCertificates(folder: string) {
  const openssl = (args: string[]) => execFileSync('openssl', args, { cwd: folder, stdio: 'pipe' })
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  const validity = ['-days', '2']

  function selfSigned(name: string): Certificate {
    const files = ['-keyout', `${name}.key`, '-out', `${name}.crt`]
    openssl(['req', '-x509', '-subj', `/CN=${name}`, ...newKey, ...validity, ...files])
    return read(name)
  }

  function signed(name: string, extensions: string): Certificate {
    writeFileSync(join(folder, `${name}.ext`), extensions)
    const request = ['-keyout', `${name}.key`, '-out', `${name}.csr`]
    openssl(['req', '-subj', `/CN=${name}`, ...newKey, ...request])
    const authority = ['-CA', 'authority.crt', '-CAkey', 'authority.key', '-CAcreateserial']
    const files = ['-in', `${name}.csr`, '-extfile', `${name}.ext`, '-out', `${name}.crt`]
    openssl(['x509', '-req', ...authority, ...validity, ...files])
    return read(name)
  }

  function read(name: string): Certificate {
    const [certFile, keyFile] = [join(folder, `${name}.crt`), join(folder, `${name}.key`)]
    const [cert, key] = [readFileSync(certFile, 'utf8'), readFileSync(keyFile, 'utf8')]
    return { certFile, keyFile, cert, key }
  }

  const authority = selfSigned('authority')
  return {
    authority,
    server: signed('server', `subjectAltName=DNS:${SERVER_NAME},DNS:localhost,IP:127.0.0.1`),
    /** For another name than that of the server. */
    otherServer: signed('other', 'subjectAltName=DNS:other.test'),
    client: signed('client', 'extendedKeyUsage=clientAuth'),
    /** Self-signed, so the server does not trust it. */
    stranger: selfSigned('stranger'),
  }
}
