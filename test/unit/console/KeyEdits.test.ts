/** What members do to a key that an administrator edits at the same time, or while NATS is away. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { HttpApiTest } from "effect/http-api"
import { ofTeams } from "../../../services/console/access/Scopes.ts"
import { ConsoleApi } from "../../../services/console/api/Api.ts"
import * as KeyHandlers from "../../../services/console/handlers/KeyHandlers.ts"
import { TokenOwners } from "../../../services/console/handlers/TokenOwners.ts"
import { Webhooks } from "../../../services/console/handlers/WebhookHandlers.ts"
import * as ApiKey from "../../../shared/keys/ApiKey.ts"
import { KeyAudit } from "../../../shared/keys/KeyAudit.ts"
import type { KeyChanges } from "../../../shared/keys/KeySettings.ts"
import { KeyNotFound, KeyStore } from "../../../shared/keys/KeyStore.ts"
import { JetStreamFailed } from "../../../shared/nats/JetStream.ts"
import * as Team from "../../../shared/teams/Team.ts"
import { TeamStore } from "../../../shared/teams/TeamStore.ts"
import { UsageCounters } from "../../../shared/usage/UsageCounters.ts"
import { layerSignedIn } from "../../fixture/identity/SignedIn.ts"

/** Both teams are the member's. */
const heavy = "team_000000heavy"
const light = "team_000000light"
const foreign = "team_00000foreign"
const defaultsOf: Readonly<Record<string, { readonly weight?: number }>> = { [heavy]: { weight: 100 } }

const teams = Effect.map(
  Effect.forEach([heavy, light, foreign], (id) => Team.make({ name: id }, id)),
  (all) => ofTeams(Team.byId(all), [heavy, light])
)

/** A key in the team `heavy` that an administrator changes to `meanwhile` just before a member's edit is written. */
const memberOf = Effect.fnUntraced(function*(meanwhile: KeyChanges) {
  const before: ApiKey.ApiKey = yield* ApiKey.make({ name: "ours", team: heavy })
  let stored = before
  let isAway = false
  let hasWebhook = true
  let isRevoked = false
  const signedIn = layerSignedIn({ name: "mel", role: "member", teams: [heavy, light], session: null }, yield* teams)
  const client = yield* HttpApiTest.groups(ConsoleApi, ["keys"]).pipe(
    Effect.provide(
      KeyHandlers.layer.pipe(
        Layer.provide([
          Layer.mock(KeyStore)({
            list: Effect.sync(() => isRevoked ? [] : [stored]),
            revoke: (id) =>
              Effect.suspend(() => {
                if (isRevoked) return Effect.fail(new KeyNotFound({ id }))
                isRevoked = true
                return Effect.succeed(stored)
              }),
            edit: (_, changes, check = () => Effect.void) =>
              Effect.gen(function*() {
                stored = { ...stored, ...meanwhile }
                yield* check(stored)
                return stored = { ...stored, ...changes }
              })
          }),
          Layer.mock(TeamStore)({ keyDefaults: (team) => Effect.succeed(defaultsOf[team ?? ""] ?? {}) }),
          Layer.mock(KeyAudit)({ edited: () => Effect.void, revoked: () => Effect.void }),
          Layer.mock(UsageCounters)({}),
          Layer.mock(TokenOwners)({}),
          Layer.mock(Webhooks)({
            endpoints: {
              remove: () =>
                Effect.suspend(() => {
                  if (isAway) return Effect.fail(new JetStreamFailed({ detail: "away" }))
                  hasWebhook = false
                  return Effect.succeed(true)
                })
            }
          } as never)
        ]),
        Layer.provideMerge(signedIn)
      )
    )
  )
  return {
    edit: (payload: KeyChanges) => client.keys.edit({ params: { id: before.id }, payload }),
    revoke: () => client.keys.revoke({ params: { id: before.id } }),
    leave: () => void (isAway = true),
    return: () => void (isAway = false),
    stored: () => stored,
    left: () => ({ hasWebhook, isRevoked })
  }
})

describe("an edit by a member", () => {
  const races: ReadonlyArray<readonly [what: string, meanwhile: KeyChanges, payload: KeyChanges, error: object]> = [
    [
      "enables no key that was disabled meanwhile",
      { disabled: true },
      { disabled: false },
      { _tag: "FieldRefused", field: "disabled" }
    ],
    [
      "keeps to the defaults of the team to which the key was moved meanwhile",
      { team: light },
      { weight: 100 },
      { _tag: "FieldRefused", field: "weight" }
    ],
    ["changes no key that was moved to another team meanwhile", { team: foreign }, { weight: 2 }, {
      _tag: "KeyUnknown"
    }]
  ]
  for (const [what, meanwhile, payload, error] of races) {
    it.effect(what, () =>
      Effect.gen(function*() {
        const { edit, stored } = yield* memberOf(meanwhile)
        const refusal = yield* Effect.flip(edit(payload))
        assert.deepInclude(refusal, error)
        assert.deepInclude(stored(), meanwhile)
        for (const [setting, value] of Object.entries(payload)) assert.notPropertyVal(stored(), setting, value)
      }))
  }

  it.effect("is written otherwise", () =>
    Effect.gen(function*() {
      const { edit, stored } = yield* memberOf({ name: "renamed" })
      yield* edit({ disabled: false, weight: 100 })
      assert.deepInclude(stored(), { name: "renamed", disabled: false, weight: 100 })
    }))
})

it.effect("a key is revoked after its webhook is removed, so that the request can be repeated", () =>
  Effect.gen(function*() {
    const nats = yield* memberOf({})
    nats.leave()
    yield* Effect.flip(nats.revoke())
    assert.deepStrictEqual(nats.left(), { hasWebhook: true, isRevoked: false })
    nats.return()
    yield* nats.revoke()
    assert.deepStrictEqual(nats.left(), { hasWebhook: false, isRevoked: true })
  }))
