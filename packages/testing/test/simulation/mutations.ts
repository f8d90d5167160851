// Faults that somebody could put into the store. The simulation must find each of them.

export interface Mutation {
  readonly name: string
  /** Below packages. Redis's side of a script is its second copy, in packages/testing. */
  readonly file: string
  readonly find: string
  readonly replace: string
}

const inFile = (
  file: string,
  mutations: readonly [name: string, find: string, replace: string][],
) => mutations.map(([name, find, replace]): Mutation => ({ name, file, find, replace }))

export const mutations: readonly Mutation[] = [
  ...inFile('session-store/src/views/record.ts', [
    ['a view creates what a logout removed', "'XX', score, id]", 'score, id]'],
    [
      'a view reads the login first',
      `      ['ZADD', keys.recent(id), 'XX', score, id],
      ['ZADD', keys.viewed(id), score, item],
      trimViews(keys, id),
      ['ZINCRBY', keys.popular(item), -1, item],
      ['HGET', keys.login(id), id],
    ],
    readOnly: false,
    read(replies) {
      const [count, login] = replies.slice(-2)`,
      `      ['HGET', keys.login(id), id],
      ['ZADD', keys.recent(id), 'XX', score, id],
      ['ZADD', keys.viewed(id), score, item],
      trimViews(keys, id),
      ['ZINCRBY', keys.popular(item), -1, item],
    ],
    readOnly: false,
    read(replies) {
      const [login, count] = [replies.at(-5), replies.at(-1)]`,
    ],
    [
      'a view is counted twice',
      "['ZINCRBY', keys.popular(item), -1, item],\n      ['HGET'",
      "['ZINCRBY', keys.popular(item), -2, item],\n      ['HGET'",
    ],
    [
      'undoing a view keeps the count',
      "['ZINCRBY', keys.popular(item), 1, item],",
      "['ZINCRBY', keys.popular(item), 0, item],",
    ],
    [
      'undoing a view keeps the list',
      "writing(['DEL', keys.viewed(id)], ...uncount)",
      "writing(['PING'], ...uncount)",
    ],
  ]),
  ...inFile('session-store/src/views/record.ts', [
    [
      'an idempotency key is the same for each item and session',
      'JSON.stringify([id, item, idempotencyKey])',
      "'one'",
    ],
    [
      'an idempotency key is new in each attempt',
      'JSON.stringify([id, item, idempotencyKey])',
      'JSON.stringify([id, item, idempotencyKey, performance.now()])',
    ],
  ]),
  ...inFile('session-store/src/sessions/check.ts', [
    [
      'a touch creates what a logout removed',
      "['ZADD', keys.recent(id), 'XX', scoreOf(now), id]",
      "['ZADD', keys.recent(id), scoreOf(now), id]",
    ],
    [
      'a check does not look for the login',
      'return user === undefined ? undefined : { user, lastSeenAt: timeOf(lastSeen) }',
      "return { user: user ?? 'ada', lastSeenAt: timeOf(lastSeen) }",
    ],
  ]),
  ...inFile('session-store/src/sessions/log-in.ts', [
    ['a login writes no list', 'addToList(keys, user, scoreOf(now), id),', "['PING'],"],
  ]),
  ...inFile('session-store/src/data/read.ts', [
    [
      'data is read after the login',
      "commands: [['HGETALL', keys.data(id)], ...operation.commands],\n    read([data, ...replies]) {",
      "commands: [...operation.commands, ['HGETALL', keys.data(id)]],\n    read(all) {\n      const replies = all.slice(0, -1), data = all.at(-1)",
    ],
  ]),
  ...inFile('session-store/src/data/write.ts', [
    [
      'a patch replaces all fields',
      '    mode,\n    ifVersion: ',
      "    mode: 'replace',\n    ifVersion: ",
    ],
  ]),
  ...inFile('session-store/src/redis/batching.ts', [
    [
      'a batch is sent again after an error',
      'await sender.send({ commands })',
      'await sender.send({ commands }).catch(() => sender.send({ commands }))',
    ],
    [
      'a lost reply is taken for a success',
      'for (const { reject } of waiting) reject(error)',
      'for (const { resolve, list } of waiting) resolve(list.commands.map(() => 1))',
    ],
    [
      'the replies of a batch are mixed up',
      'waiting[index]?.resolve(outcomes)',
      'waiting.at(-1 - index)?.resolve(outcomes)',
    ],
  ]),
  ...inFile('session-store/src/redis/outcomes.ts', [
    [
      'an unknown outcome is said to have written nothing',
      'if (lost) throw outcomeUnknown(mayHaveWritten, lost)',
      'if (lost) throw outcomeUnknown(false, lost)',
    ],
    [
      'a failed batch is said to have written nothing',
      `failed; see the cause',
          {
            mayHaveWritten: !readOnly,`,
      `failed; see the cause',
          {
            mayHaveWritten: false,`,
    ],
  ]),
  ...inFile('testing/src/scripts.ts', [
    ['an end keeps the login', '  memory.hash(login).delete(id)\n', ''],
    ['an end keeps the data', 'memory.remove(...records)', "memory.remove(records[0] ?? '')"],
    ['an end tells nobody', '  memory.publish(login, id)\n}', '}'],
    ['a patch creates what a logout removed', "if (!exists) return 'gone'", ''],
  ]),
  ...inFile('session-store/src/retention/evict.ts', [
    [
      'the janitor takes seconds for milliseconds',
      'scoreOf(now()) - idleSeconds',
      'scoreOf(now()) - idleSeconds / 1000',
    ],
  ]),
  ...inFile('session-store/src/retention/sweep.ts', [
    [
      'the sweep forgets the lists of users',
      'yield await unlist(context, users)',
      'yield { swept: users.length }',
    ],
  ]),
  ...inFile('session-store/src/sessions/log-out.ts', [
    ['a maximum of sessions ends one too many', 'sessions.slice(max)', 'sessions.slice(max - 1)'],
    ['a maximum of sessions is not enforced', 'sessions.slice(max)', 'sessions.slice(max + 100)'],
  ]),
]
