import { type ChildProcess, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import * as tar from 'tar'
import { onTestFinished } from 'vitest'

const cli = fileURLToPath(new URL('../src/cli.ts', import.meta.url))

/** `redis-server` of the tiny source prints its build and its arguments. */
const program = `#include <stdio.h>
#include <string.h>
#include <unistd.h>
#define TEXT_OF(word) #word
#define TEXT(macro) TEXT_OF(macro)
int main(int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], "--version")) {
        printf("Redis server v=0.0.1 onetrip=%s-%s\\n", TEXT(ONETRIP_BUILD), TEXT(ONETRIP_BUILD_KEY));
        return 0;
    }
    printf("kind: plain\\n");
    printf("process: %d\\n", (int) getpid());
    for (int i = 1; i < argc; i++) printf("argument: %s\\n", argv[i]);
    return 0;
}
`

/** A patch that replaces the line with "plain". */
export function tinyPatch(kind: string, before = 'plain'): string {
  return `What: The tiny program says ${kind}.

--- a/src/main.c
+++ b/src/main.c
@@ -8,5 +8,5 @@
         return 0;
     }
-    printf("kind: ${before}\\n");
+    printf("kind: ${kind}\\n");
     printf("process: %d\\n", (int) getpid());
     for (int i = 1; i < argc; i++) printf("argument: %s\\n", argv[i]);
`
}

const compilesAtOnce =
  'redis-server redis-cli redis-benchmark: main.c\n\t$(CC) $(REDIS_CFLAGS) -o $@ $<\n'

/** Compiles forever. The compiling process writes its pid to `$TMPDIR/compiler`. */
export const compilesForEver = `redis-server redis-cli redis-benchmark:
\tsh -c 'echo $$$$ > "$$TMPDIR/compiler.new"; mv "$$TMPDIR/compiler.new" "$$TMPDIR/compiler"; exec sleep 300'
`

/** Takes about a second. */
export const compilesSlowly = compilesAtOnce.replace('\t', '\tsleep 0.5; ')

export interface TinyRedis {
  /** The folder of the test; `$TMPDIR` of its commands. */
  directory: string
  redis: string
  archive: string
  sha256: string
  /** The options of the command line for the archive. */
  fromArchive: readonly string[]
  patches: string
  /** Names in the folder of builds, sorted. */
  builds(): Promise<string[]>
  /** Names in the folder of the source, sorted. */
  source(): Promise<string[]>
  /** Runs the command line with the test's own home and patches. */
  run(args: readonly string[], env?: NodeJS.ProcessEnv): Promise<CommandResult>
  /** Like `run`, but does not wait for the end. */
  start(args: readonly string[], env?: NodeJS.ProcessEnv): Running
}

interface CommandResult {
  code: number | null
  signal: NodeJS.Signals | null
  stdout: string
  stderr: string
}

interface Running {
  process: ChildProcess
  result: Promise<CommandResult>
}

/**
 * Creates a source archive of a few lines that is built like Redis, by the real make and cc, so that a test takes
 * a second. Everything is removed after the test.
 */
export async function tinyRedis({
  makefile = compilesAtOnce,
}: {
  makefile?: string | undefined
} = {}): Promise<TinyRedis> {
  const directory = await mkdtemp(join(tmpdir(), 'onetrip-build-'))
  onTestFinished(() => rm(directory, { recursive: true, force: true }))
  const home = join(directory, 'home')

  const src = join(directory, 'redis-0.0.1', 'src')
  await mkdir(src, { recursive: true })
  await writeFile(join(src, 'version.h'), '#define REDIS_VERSION "0.0.1"\n')
  await writeFile(join(src, 'main.c'), program)
  await writeFile(join(src, 'Makefile'), makefile)
  const archive = join(directory, 'redis-0.0.1.tar.gz')
  await tar.create({ file: archive, gzip: true, cwd: directory }, ['redis-0.0.1'])
  const sha256 = createHash('sha256')
    .update(await readFile(archive))
    .digest('hex')

  const patches = join(directory, 'patches')
  await mkdir(patches)
  await writeFile(join(patches, 'patched.series'), '# for tests\n0001-say-patched.patch\n')
  await writeFile(join(patches, 'stock.series'), '')
  await writeFile(join(patches, 'baseline.series'), '')
  await writeFile(join(patches, '0001-say-patched.patch'), tinyPatch('patched'))

  const start: TinyRedis['start'] = (args, env = {}) => {
    const { REDIS_SOURCE, REDIS_SERVER, ...inherited } = process.env
    const child = spawn(process.execPath, [cli, ...args], {
      cwd: directory,
      env: {
        ...inherited,
        ONETRIP_HOME: home,
        REDIS_PATCHES: patches,
        TMPDIR: directory,
        ...env,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let stdout = ''
    let stderr = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text
    })
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text
    })
    const { promise, resolve, reject } = Promise.withResolvers<CommandResult>()
    child.once('error', reject)
    child.once('close', (code, signal) => resolve({ code, signal, stdout, stderr }))
    return { process: child, result: promise }
  }
  const redis = join(home, 'redis')
  const namesIn = async (folder: string) =>
    (await readdir(join(redis, folder)).catch(() => [])).sort()
  return {
    directory,
    redis,
    archive,
    sha256,
    patches,
    start,
    fromArchive: ['--source', archive, '--sha256', sha256],
    builds: () => namesIn('builds'),
    source: () => namesIn('source'),
    run: (args, env) => start(args, env).result,
  }
}
