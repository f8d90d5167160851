import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { messageOf, Problem } from '@onetrip/stack/problem.ts'
import { startProgram } from '@onetrip/stack/program.ts'
import { isIsolated } from './program.ts'

/** A second network namespace, which a pair of virtual network devices (veth) connects to that of this process. */
export interface PeerNetwork {
  /** The address of this process's namespace, for programs in the other one. */
  readonly address: string
  /** The first part of a command line: runs the rest in the other namespace. */
  readonly enter: readonly string[]
  /** Removes the namespace and the devices. */
  stop(): Promise<void>
}

const [HERE, THERE] = ['onetrip0', 'onetrip1'] // names of the devices
/** The generator connects from the 200 addresses after this one, see `generator.c`: all of them are in `CLIENTS`. */
const SERVER = '10.211.55.255'
const CLIENTS = '10.211.56.0/24'
const GATEWAY = '10.211.56.250' // one address to resolve instead of 200

/**
 * Creates a second namespace.
 *
 * @throws Problem if this process does not have its own namespace, or without the programs ip and unshare; the reason
 *   of `signal`.
 */
export async function startPeerNetwork(signal: AbortSignal): Promise<PeerNetwork> {
  requireOwnNetwork('The transport veth')
  const program = await startProgram({
    name: 'the second network namespace',
    command: 'unshare',
    args: ['--net', 'sh', '-c', 'ip link set lo up && echo ready && exec sleep infinity'],
    ready: /^ready/,
    signal,
  })
  const enter = ['nsenter', `--net=/proc/${program.pid}/ns/net`]
  try {
    await ip(`link add ${HERE} type veth peer name ${THERE} netns ${program.pid}`)
    await ip(`address add ${SERVER}/32 dev ${HERE}`)
    await ip(`link set ${HERE} up`)
    await ip(`link set ${THERE} up`, enter)
    await ip(`route add ${SERVER}/32 dev ${THERE}`, enter)
    await ip(`route add local ${CLIENTS} dev lo`, enter)
    await ip(`route add ${CLIENTS} via ${GATEWAY} dev ${HERE} onlink`)
  } catch (error) {
    await program.stop(1_000)
    throw error
  }
  return { address: SERVER, enter, stop: async () => void (await program.stop(1_000)) }
}

/**
 * Requires that this process has its own network namespace, see `isolateProcess`.
 *
 * @throws Problem
 */
export function requireOwnNetwork(what: string): void {
  if (isIsolated()) return
  throw new Problem(
    `${what} needs its own network namespace, but this process may not create one. ${HOW_TO_RUN}`,
  )
}

export const HOW_TO_RUN =
  'Run it as root, or put "unshare -r" before the command, outside of containers.'

/**
 * Runs `ip`, in this namespace or, after the command line `enter`, in another one.
 *
 * @throws Problem when the program `ip` (iproute2) is missing or fails.
 */
export async function ip(args: string, enter: readonly string[] = []): Promise<void> {
  const [program = '', ...rest] = [...enter, 'ip', ...args.split(' ')]
  await promisify(execFile)(program, rest).catch((cause) => {
    throw new Problem(
      `A network device cannot be set up with the program ip (iproute2): ${messageOf(cause)}`,
      { cause },
    )
  })
}
