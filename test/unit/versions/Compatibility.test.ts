/**
 * This version reads what every former version has stored and sent.
 *
 * `test/fixture/versions` has a file for each version, and `next.json` for the working tree. To release a version, record it and add
 * its name to `versions`:
 *
 *     node deploy/local/run.js test/fixture/versions/main.ts 0.2.0
 *
 * If a change of a format is meant to be compatible, record `next` again; the files of versions never change. That former versions
 * read what this one writes is tested by `npm run upgrade`.
 */
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, Option, Schema } from "effect"
import { decodeOccupancy, decodeSlots } from "../../../shared/bus/fairness/Occupancy.ts"
import { decodeBundle, type Entry } from "../../../shared/bus/protocol/Bundle.ts"
import { decodeControl, decodeFrame } from "../../../shared/bus/protocol/Frame.ts"
import { decodeJob } from "../../../shared/bus/protocol/JobMessage.ts"
import * as FileRecord from "../../../shared/files/FileRecord.ts"
import { KeyChange } from "../../../shared/keys/KeyChange.ts"
import { decodeRecord as decodeKey } from "../../../shared/keys/KeyStore.ts"
import { Ledger } from "../../../shared/limits/Ledger.ts"
import { eventsOf } from "../../../shared/nats/EventStream.ts"
import * as Seal from "../../../shared/records/Seal.ts"
import * as TaskRecord from "../../../shared/tasks/TaskRecord.ts"
import * as Team from "../../../shared/teams/Team.ts"
import { countedUntilKey, dailyTally, decodeCountedUntil, monthlyTally } from "../../../shared/usage/Tally.ts"
import { decodeUsageEvent } from "../../../shared/usage/UsageEvent.ts"
import { testSecret } from "../../fixture/gateway/Gateway.ts"
import { bytesOf, messageOf, type Recorded, recordedBy } from "../../fixture/versions/Recorded.ts"

/** What each version has: how many records or messages of each kind, at least. */
const versions: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  "0.1.0": {
    key: 2,
    keyChange: 1,
    ledger: 3,
    task: 1,
    counters: 1,
    spending: 1,
    usageEvent: 3,
    job: 4,
    claims: 4,
    claim: 3,
    data: 3,
    error: 1,
    go: 3
  },
  next: {
    key: 2,
    keyChange: 1,
    team: 1,
    ledger: 3,
    task: 3,
    file: 1,
    response: 1,
    counters: 1,
    spending: 1,
    countedUntil: 1,
    usageEvent: 3,
    job: 4,
    bundle: 4,
    claim: 2,
    data: 2,
    error: 1,
    go: 1,
    slots: 1,
    occupancy: 1
  }
}

const sealed = Effect.runSync(
  Effect.provide(Seal.fromSecret, ConfigProvider.layer(ConfigProvider.fromUnknown({ GATEWAY_SECRET: testSecret })))
)

interface Read {
  readonly kind: string
  /** `undefined` if this version cannot read it. */
  readonly value: unknown
}

const one = <A>(kind: string, value: Option.Option<A> | A | undefined): ReadonlyArray<Read> => [
  { kind, value: Option.isOption(value) ? Option.getOrUndefined(value) : value }
]

const decodeLedger = Schema.decodeUnknownOption(Schema.fromJsonString(Ledger))
const decodeChange = Schema.decodeUnknownOption(Schema.fromJsonString(KeyChange))

const entryOf = (entry: Entry): Read => {
  if (entry.type === "frame") return { kind: entry.frame.type, value: entry.frame }
  return entry.type === "claim" ? { kind: "claims", value: entry.claim } : { kind: entry.type, value: entry }
}

/** The parts of a message that a worker or an ingress reads. */
const readFrames = (recorded: Recorded): ReadonlyArray<Read> => {
  const message = messageOf(recorded)
  // a bundle has no headers
  if (recorded.headers === undefined && recorded.subject.split(".")[3] === "-") {
    const bundle = decodeBundle(message.data)
    return [...one("bundle", bundle), ...(bundle?.entries ?? []).map(entryOf)]
  }
  const frame = decodeFrame(message)
  return one(frame?.type ?? "frame", frame)
}

/** Reads everything in a record or message, by where it is from. */
const readersFor = (all: ReadonlyArray<Recorded>) => {
  const salts = all.filter(({ from }) => from === "KV_OWNERS")
  const owners = salts.map(({ subject, text = "" }) => ({ id: subject.split(".").at(-1) ?? "", salt: text }))
  const readers: Readonly<Record<string, (recorded: Recorded, key: string) => ReadonlyArray<Read>>> = {
    KV_API_KEYS: ({ text = "" }) => one("key", decodeKey(text)),
    KEY_CHANGES: ({ text }) => one("keyChange", decodeChange(text)),
    KV_TEAMS: ({ text = "" }) => one("team", Team.decode(text)),
    KV_LIMITS: ({ text }) => one("ledger", decodeLedger(text)),
    KV_KEY_LIMITS: ({ text }) => one("ledger", decodeLedger(text)),
    KV_VIDEO_TASKS: ({ text = "" }) => one("task", TaskRecord.decode(text)),
    KV_TASKS: ({ text = "" }, key) => /\.resp_\w+$|\.task_\w+$/.test(key) ? one("task", TaskRecord.decode(text)) : [],
    KV_BATCHES: ({ text = "" }) => one("task", TaskRecord.decode(text)),
    KV_CLIENT_FILES: ({ text = "" }, key) =>
      key.split(".")[1]?.startsWith("file-") === true ? one("file", FileRecord.decodeEntry(text)) : [],
    KV_RESPONSES: (recorded, key) => {
      const [, id = ""] = key.split(".")
      if (!id.startsWith("resp_")) return []
      const opened = owners.map((owner) => sealed.open({ owner, kind: "response", id, page: 0 }, bytesOf(recorded)))
      return one("response", opened.find(Option.isSome) ?? Option.none())
    },
    KV_USAGE_COUNTERS: ({ text = "" }, key) => key === "checkpoint" ? [] : one("counters", dailyTally.decode(text)),
    KV_USAGE_SPEND: ({ text = "" }, key) =>
      key === countedUntilKey
        ? one("countedUntil", decodeCountedUntil(text))
        : one("spending", monthlyTally.decode(text)),
    USAGE: ({ text = "" }) => eventsOf(text).flatMap((event) => one("usageEvent", decodeUsageEvent(event))),
    jobs: (recorded) => one("job", decodeJob(messageOf(recorded), 2)),
    jobs3: (recorded) => one("job", decodeJob(messageOf(recorded), 3)),
    r: readFrames,
    ctl: (recorded) => {
      const control = decodeControl(messageOf(recorded))
      return one(control?.type ?? "control", control)
    },
    slots: ({ text = "" }) => one("slots", decodeSlots(text)),
    occupancy: ({ text = "" }) => one("occupancy", decodeOccupancy(text))
  }
  return readers
}

const keyOf = ({ subject }: Recorded): string => /^\$KV\.[^.]+\.(.*)$/.exec(subject)?.[1] ?? subject

describe.each(Object.entries(versions))("what version %s has written", (version, expected) => {
  const all = recordedBy(version)
  const readers = readersFor(all)
  const read = all.flatMap((recorded) =>
    (readers[recorded.from]?.(recorded, keyOf(recorded)) ?? []).map((each) => ({ recorded, ...each }))
  )

  it("is readable", () => {
    assert.deepStrictEqual(read.filter(({ value }) => value === undefined), [])
  })

  it("is of every kind", () => {
    const counts = Object.fromEntries(
      Object.keys(expected).map((kind) => [kind, read.filter((each) => each.kind === kind).length])
    )
    for (const [kind, count] of Object.entries(expected)) assert.isAtLeast(counts[kind] ?? 0, count, kind)
  })

  it("has kept its meaning", () => {
    const valuesOf = (kind: string) =>
      read.filter((each) => each.kind === kind).map(({ value }) => value as Readonly<Record<string, unknown>>)
    assert.includeMembers(valuesOf("key").map(({ name }) => name), ["test", "recorded"])
    assert.deepInclude(valuesOf("key").find(({ name }) => name === "recorded"), {
      concurrentRequests: 1_000,
      monthlyBudgetUsd: 1_000,
      requestsPerMinute: 1_000_000,
      tokensPerMinute: 100_000_000
    })
    const events = valuesOf("usageEvent")
    assert.deepInclude(events.find(({ operation }) => operation === "embeddings"), {
      costUsd: 0.002,
      outcome: "success"
    })
    assert.deepInclude(events.find(({ outcome }) => outcome === "failure"), {
      error: "ProviderRejected",
      model: "paid-chat"
    })
    assert.isTrue(valuesOf("task").some(({ status }) => status === "completed"))
    const jobs = valuesOf("job").filter(({ operation }) => operation !== "video.generations")
    assert.includeMembers(jobs.map(({ operation }) => operation), ["chat.completions", "embeddings"])
    assert.isTrue(jobs.every(({ attempt, body }) => attempt === 1 && body !== undefined))
    assert.includeMembers(valuesOf("claim").map(({ redispatch }) => redispatch), ["mayHaveBeenSent"])
  })
})
