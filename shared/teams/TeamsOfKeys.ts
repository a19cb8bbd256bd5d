/** Tells the process that counts usage which teams share what a key uses: those that it is in when its usage is counted. */
import { Effect, Layer, Option } from "effect"
import { decodeRecord } from "../keys/KeyStore.ts"
import { whileJetStreamFails } from "../nats/JetStream.ts"
import { mirrorBucket, openBucket } from "../nats/KeyValue.ts"
import { buckets } from "../nats/Storage.ts"
import { KeyTeams } from "../usage/KeyTeams.ts"
import { TeamTree } from "./TeamTree.ts"

/** Waits until the copies of keys and teams are complete. */
export const layer = Layer.effect(
  KeyTeams,
  Effect.gen(function*() {
    const tree = yield* TeamTree
    const bucket = yield* openBucket(buckets.apiKeys).pipe(Effect.retry(whileJetStreamFails))
    /** The team by the key's id. A revoked key stays: its last usage is counted later. */
    const teams = new Map<string, string>()
    yield* mirrorBucket(bucket, ({ value }) => {
      const key = Option.getOrUndefined(Option.flatMap(value, decodeRecord))
      if (key === undefined) return undefined
      if (key.team === null) teams.delete(key.id)
      else teams.set(key.id, key.team)
      return key.id
    })
    return (key) => {
      const team = teams.get(key)
      return team === undefined ? [] : tree.pathOf(team)?.map(({ id }) => id) ?? []
    }
  })
).pipe(Layer.provide(TeamTree.layer))
