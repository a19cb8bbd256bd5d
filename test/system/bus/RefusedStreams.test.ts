/** Streams that a NATS server refuses: the error says in one line why, and what an operator changes. */
import { assert, describe, it } from "@effect/vitest"
import { jetstreamManager, StorageType, type StreamConfig } from "@nats-io/jetstream"
import { connect } from "@nats-io/transport-node"
import { Effect } from "effect"
import { attempt, ensureStream } from "../../../shared/nats/JetStream.ts"
import { NatsServer } from "../../fixture/nats/NatsServer.ts"

/** Two accounts: one with the server's limits, one with limits of its own. */
const config = `
jetstream { max_memory_store: 1MB, max_file_store: 1MB }
accounts {
  free: { jetstream: enabled, users: [{ user: free, password: free }] }
  small: {
    jetstream: { max_mem: 64KB, max_file: 64KB, max_streams: 1 }
    users: [{ user: small, password: small }]
  }
}
`

const memory = { storage: StorageType.Memory, max_bytes: 2_000_000 }
const file = { storage: StorageType.File, max_bytes: 2_000_000 }
const tiny = { storage: StorageType.Memory, max_bytes: 1_000 }

// the messages are those of nats-server's errors.json
const refusals: ReadonlyArray<
  readonly [account: string, first: Partial<StreamConfig>, second: Partial<StreamConfig>, says: RegExp]
> = [
  ["free", tiny, memory, /^JetStream: insufficient memory resources available: raise max_memory_store /],
  ["free", tiny, file, /^JetStream: insufficient storage resources available: raise max_file_store /],
  [
    "free",
    tiny,
    { ...tiny, num_replicas: 3 },
    /^JetStream: replicas > 1 not supported in non-clustered mode: .*NATS_REPLICAS/
  ],
  ["small", tiny, tiny, /^JetStream: maximum number of streams reached: raise the account's limit of streams$/],
  [
    "small",
    { ...memory, max_bytes: 100_000 },
    tiny,
    /^JetStream: insufficient memory resources available: .*max_mem of the account$/
  ]
]

describe("a refused stream", () => {
  it.effect.each(refusals)(
    "of the account %s",
    ([account, first, second, says]) =>
      Effect.scoped(Effect.gen(function*() {
        const nats = yield* NatsServer.make({ config })
        const connection = yield* Effect.acquireRelease(
          Effect.promise(() => connect({ servers: nats.url, user: account, pass: account })),
          (connection) => Effect.promise(() => connection.close())
        )
        const manager = yield* Effect.promise(() => jetstreamManager(connection, { checkAPI: false }))
        const ensure = (name: string, config: Partial<StreamConfig>) =>
          attempt(() => ensureStream(manager, { name, subjects: [name], ...config }))
        const error = yield* Effect.flip(Effect.andThen(ensure("A", first), ensure("B", second)))
        assert.match(error.message, says)
      }))
  )
})
