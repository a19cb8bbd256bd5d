/**
 * Every bucket, object store and stream of events of the gateway and how long it keeps what is in it. Nothing else is opened: from these
 * tables everything is provisioned, and `Access.ts` says who may read and write which.
 */

const hourMs = 60 * 60_000

/**
 * The NATS account that something is kept in. Workers are in `data` and not in `control`: JetStream sends its answers to any
 * reply subject, with rights of its own, so that whoever is in an account can overwrite what is kept in it.
 */
export type Account = "data" | "control"
export const accounts: ReadonlyArray<Account> = ["data", "control"]

/** A thing that is kept in one of them. */
export interface InAccount {
  readonly account: Account
}

/** A bucket of small records. */
export interface KeptBucket extends InAccount {
  readonly name: string
  /** What was not written for so many milliseconds is gone. Absent: it is kept for good. */
  readonly ttlMs?: number
}

/** A store of large objects. */
export interface KeptStore {
  readonly name: string
  readonly ttlMs: number
}

/** A stream of events. */
export interface KeptEvents extends InAccount {
  readonly name: string
  readonly subjects: string
  /** Events that are older, or more, are forgotten. */
  readonly maxAgeMs: number
  readonly maxBytes: number
  /** For how long an event that is sent again is known by its id. */
  readonly duplicatesMs: number
}

export const buckets = {
  apiKeys: { name: "API_KEYS", account: "control" },
  consoleSessions: { name: "CONSOLE_SESSIONS", account: "control", ttlMs: 12 * hourMs },
  // longer than any window: a ledger that no replica has written for so long says nothing any more
  keyLimits: { name: "KEY_LIMITS", account: "control", ttlMs: hourMs },
  providerLimits: { name: "LIMITS", account: "data", ttlMs: hourMs },
  usageCounters: { name: "USAGE_COUNTERS", account: "control", ttlMs: 400 * 24 * hourMs },
  usageSpend: { name: "USAGE_SPEND", account: "control", ttlMs: 400 * 24 * hourMs },
  videoTasks: { name: "VIDEO_TASKS", account: "data", ttlMs: 24 * hourMs }
} satisfies Record<string, KeptBucket>

export const stores = {
  compactions: { name: "COMPACTIONS", ttlMs: 30 * 24 * hourMs },
  results: { name: "RESULTS", ttlMs: hourMs },
  videoContent: { name: "VIDEO_CONTENT", ttlMs: 24 * hourMs }
} satisfies Record<string, KeptStore>

export const events = {
  /** Who changed which API key. */
  keyChanges: {
    name: "KEY_CHANGES",
    account: "control",
    subjects: "keychanges.>",
    maxAgeMs: 400 * 24 * hourMs,
    maxBytes: 64 * 1024 ** 2,
    duplicatesMs: 2 * 60_000
  },
  /** Where usage waits to be counted, and can be read for a month. */
  usage: {
    name: "USAGE",
    account: "data",
    subjects: "usage.>",
    maxAgeMs: 30 * 24 * hourMs,
    maxBytes: 1024 ** 3,
    duplicatesMs: 10 * 60_000
  }
} satisfies Record<string, KeptEvents>

/** The streams in which JetStream keeps them. */
export const bucketStream = ({ name }: KeptBucket): string => `KV_${name}`
export const storeStream = ({ name }: KeptStore): string => `OBJ_${name}`
