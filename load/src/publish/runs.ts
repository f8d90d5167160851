/** A published result: its file in `load/results`, the command that measures it, and how long that takes. */
export interface PublishedRun {
  /** Without `.json`. */
  readonly name: string
  /** Of `npm run load --`, separated by spaces. */
  readonly args: string
  /** On a machine of two cores with nothing else to do, with the start of its programs. */
  readonly seconds: number
}

const steps = 'naive,sequential,pipeline,autopipelining,node-redis,batch'
const links = 'loopback,0.3ms@1Gb/s,1ms@1Gb/s'

/**
 * All published results, those first that decide most. A run takes its rounds × its cases × (the duration and 0.2 to
 * 0.8 s), a warm-up of each case (40 s with `--processes warm`), and the start of its programs.
 */
export const publishedRuns: readonly PublishedRun[] = Object.entries({
  // The steps, and how long requests wait.
  http: `530 http --variants ${steps},bare --rounds 7 --duration 3 --processes warm`,
  latency:
    '430 latency --variants naive,pipeline,batch,node-redis --rate 500,2000,10000 --shares 50,90 --limit p99<10 --rounds 2 --duration 1.5 --processes warm',
  'http-redis':
    '160 http --variants naive,batch --redis-build stock,patched --io-threads 1,2 --rounds 5 --duration 3',
  departures: '105 redis departures --threads 1 --rounds 3 --duration 0.3',
  // Fewer clients: `stock` may take a minute to kill 10,000 with I/O threads.
  'departures-threads':
    '45 redis departures --builds stock,patched --threads 2 --idle 2000 --rounds 3',
  storm: '105 redis storm --duration 3',
  short:
    '110 redis short --builds stock,patched --threads 1,2 --idle 0,10000 --transports tcp --rounds 5 --duration 0.5',
  // Its warm counterparts are rows of `http`.
  'http-fresh': '35 http --variants node-redis,batch --rounds 3 --duration 2 --processes fresh',
  clients:
    '195 clients --clients batch,ioredis,ioredis-auto,iovalkey,node-redis,glide,bun,redis-rs,rueidis,go-redis,go-redis-auto --duration 0.8',
  pattern: `105 store --operation pattern --strategies naive,sequential,pipeline,batch --links ${links} --concurrency 1,64`,
  store:
    '90 store --strategies naive,sequential,pipeline,batch,transaction,script --rounds 2 --duration 0.8',
  'http-distance':
    '115 http --variants naive,sequential,pipeline,node-redis,batch --connections 1,64 --links loopback,1ms@1Gb/s --rounds 3 --duration 1 --warmup 1',
  retention: '75 retention --sessions 200000 --batch-sizes 100,1000',
  cluster: '80 cluster --parts views --nodes 1,3 --duration 1',
  'threads-articles':
    '40 redis threads --threads 1,2,4 --bytes 100 --pipeline 1 --connections 400 --duration 0.6',
  'threads-rate':
    '30 redis threads --commands GET,SET,MGET,LPUSH --threads 1,2 --bytes 100 --pipeline 1 --connections 100 --rate 20000 --duration 0.8',
  threads: '60 redis threads --threads 1,2 --bytes 64,16384 --duration 0.4',
  'short-light':
    '65 redis short --shape rates,burst,half-close --builds stock,patched --duration 0.5',
  connections:
    '45 store --operation record-view --strategies pipeline,batch --links loopback --concurrency 64 --pool-sizes 1,2,4,8',
  'http-others':
    '55 http --variants pipeline,pipeline-framed,batch,glide,connect-redis --rounds 3 --duration 2',
  'node-clients': '60 redis commands --sets node-clients --duration 0.5 --requests 10000',
  'slot-move': '75 cluster --parts slot-move --sessions 10000,100000,1000000 --rounds 2',
  pipelines: '25 redis pipelines --pipeline 10,100 --values 100',
  'short-articles': '65 redis short --shape get-8000 --requests 30000',
}).map(([name, text]) => {
  const [seconds = '', ...args] = text.split(' ')
  return { name, args: args.join(' '), seconds: Number(seconds) }
})
