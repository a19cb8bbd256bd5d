/**
 * Provides `KeyTeams` for the process that counts usage: the teams of a key, or of an owner of tokens, at the time when its usage is
 * counted.
 */
import { Effect, Layer, Option } from "effect"
import { decodeRecord } from "../keys/KeyStore.ts"
import * as PrincipalRecord from "../keys/PrincipalRecord.ts"
import { whileJetStreamFails } from "../nats/JetStream.ts"
import { mirrorBucket, openBucket } from "../nats/KeyValue.ts"
import { buckets } from "../nats/Storage.ts"
import { KeyTeams } from "../usage/KeyTeams.ts"
import { TeamTree } from "./TeamTree.ts"

/** Waits until the copies of keys, owners of tokens and teams are complete. */
export const layer = Layer.effect(
  KeyTeams,
  Effect.gen(function*() {
    const tree = yield* TeamTree
    const keys = yield* openBucket(buckets.apiKeys).pipe(Effect.retry(whileJetStreamFails))
    const principals = yield* openBucket(buckets.principals).pipe(Effect.retry(whileJetStreamFails))
    /** The team by the key's id. Revoked keys stay, because their last usage is counted later. */
    const teams = new Map<string, string>()
    const place = (id: string, team: string | null): string => {
      if (team === null) teams.delete(id)
      else teams.set(id, team)
      return id
    }
    yield* mirrorBucket(keys, ({ value }) => {
      const key = Option.getOrUndefined(Option.flatMap(value, decodeRecord))
      return key && place(key.id, key.team)
    })
    yield* mirrorBucket(principals, ({ key: id, value }) => {
      const record = Option.getOrUndefined(Option.flatMap(value, PrincipalRecord.decode))
      return record && place(id, record.team)
    })
    return (key) => {
      const team = teams.get(key)
      return team === undefined ? [] : tree.pathOf(team)?.map(({ id }) => id) ?? []
    }
  })
).pipe(Layer.provide(TeamTree.layer))
