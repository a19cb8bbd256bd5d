/**
 * Lists every bucket, object store, event stream and work queue of the gateway, and how long each keeps its contents. Provisioning
 * follows these tables; `Access.ts` lists which services may read and write each.
 */

const hourMs = 60 * 60_000

/**
 * The NATS account of a store. Workers are in `data` but not in `control`. JetStream sends answers to any reply subject with the
 * server's own rights, so a client of an account could use answers to overwrite anything stored in that account.
 */
export type Account = "data" | "control"
export const accounts: ReadonlyArray<Account> = ["data", "control"]

/** Anything that is stored in an account. */
export interface InAccount {
  readonly account: Account
}

/** A bucket of small records. */
export interface BucketSpec extends InAccount {
  readonly name: string
  /** A record expires this many milliseconds after its last write. Absent: never. */
  readonly ttlMs?: number
  /** The environment variable with which the operator changes `ttlMs`, in days. Provisioning reads it. */
  readonly daysVariable?: string
}

/** A store of large objects. */
export interface StoreSpec {
  readonly name: string
  readonly ttlMs: number
}

/** A stream of events. */
export interface EventStreamSpec extends InAccount {
  readonly name: string
  readonly subjects: string
  /** Older events, or those beyond `maxBytes`, are dropped. */
  readonly maxAgeMs: number
  readonly maxBytes: number
  /** How long JetStream detects duplicates by id. */
  readonly duplicatesMs: number
}

/** A queue of work items, each done by one of several processes; see `WorkQueue.ts`. */
export interface WorkQueueSpec {
  readonly name: string
  readonly subjects: string
  /** Older work is dropped. */
  readonly maxAgeMs: number
  /** How many items may be in the queue, waiting or in progress: in all, and under one subject. Further items are refused. */
  readonly maxItems: number
  readonly maxItemsPerSubject: number
  readonly maxBytes: number
  /** Work that is not settled after this long is delivered again. */
  readonly settledWithinMs: number
}

export const buckets = {
  apiKeys: { name: "API_KEYS", account: "control" },
  /** The records of clients' files. */
  clientFiles: { name: "CLIENT_FILES", account: "data", ttlMs: 30 * 24 * hourMs },
  /** The records of batches, kept as long as their files. */
  batches: { name: "BATCHES", account: "data", ttlMs: 30 * 24 * hourMs },
  /** The log of each batch's lines until the results are assembled, and the mark that a batch's log is closed. */
  batchLines: { name: "BATCH_LINES", account: "data", ttlMs: 72 * hourMs },
  consoleSessions: { name: "CONSOLE_SESSIONS", account: "control", ttlMs: 12 * hourMs },
  // longer than any window: a ledger without writes for this long no longer matters
  keyLimits: { name: "KEY_LIMITS", account: "control", ttlMs: hourMs },
  /** The salts of owners; see `shared/records`. */
  owners: { name: "OWNERS", account: "control" },
  /** The owners of tokens, who have no API key. */
  principals: { name: "PRINCIPALS", account: "control", ttlMs: 400 * 24 * hourMs },
  providerLimits: { name: "LIMITS", account: "data", ttlMs: hourMs },
  responses: { name: "RESPONSES", account: "data", ttlMs: 30 * 24 * hourMs, daysVariable: "GATEWAY_RESPONSES_DAYS" },
  /** Durable tasks except videos: records, requests and answers. A task runs for at most a day and is kept for another day. */
  tasks: { name: "TASKS", account: "data", ttlMs: 48 * hourMs },
  /** Organisations and teams; see `shared/teams`. */
  teams: { name: "TEAMS", account: "control" },
  usageCounters: { name: "USAGE_COUNTERS", account: "control", ttlMs: 400 * 24 * hourMs },
  usageSpend: { name: "USAGE_SPEND", account: "control", ttlMs: 400 * 24 * hourMs },
  videoTasks: { name: "VIDEO_TASKS", account: "data", ttlMs: 24 * hourMs },
  /** The deliveries of webhooks, which are tried for a day and listed for two days after the last try. */
  webhookDeliveries: { name: "WEBHOOK_DELIVERIES", account: "data", ttlMs: 48 * hourMs },
  webhookEndpoints: { name: "WEBHOOK_ENDPOINTS", account: "data" }
} satisfies Record<string, BucketSpec>

export const stores = {
  clientFiles: { name: "CLIENT_FILES", ttlMs: buckets.clientFiles.ttlMs },
  compactions: { name: "COMPACTIONS", ttlMs: 30 * 24 * hourMs },
  results: { name: "RESULTS", ttlMs: hourMs },
  videoContent: { name: "VIDEO_CONTENT", ttlMs: 24 * hourMs }
} satisfies Record<string, StoreSpec>

export const events = {
  /** The audit log of API keys and teams. */
  keyChanges: {
    name: "KEY_CHANGES",
    account: "control",
    subjects: "keychanges.>",
    maxAgeMs: 400 * 24 * hourMs,
    maxBytes: 64 * 1024 ** 2,
    duplicatesMs: 2 * 60_000
  },
  /** Usage events: counted once, kept for 30 days. */
  usage: {
    name: "USAGE",
    account: "data",
    subjects: "usage.>",
    maxAgeMs: 30 * 24 * hourMs,
    maxBytes: 1024 ** 3,
    duplicatesMs: 10 * 60_000
  }
} satisfies Record<string, EventStreamSpec>

export const queues = {
  /** Events for webhook receivers, with a subject for each owner. */
  webhooks: {
    name: "WEBHOOKS",
    subjects: "webhooks.*",
    maxAgeMs: 25 * hourMs,
    maxItems: 50_000,
    maxItemsPerSubject: 1_000,
    maxBytes: 16 * 1024 ** 2,
    settledWithinMs: 60_000
  }
} satisfies Record<string, WorkQueueSpec>

/** The streams in which JetStream stores buckets and object stores. */
export const bucketStream = ({ name }: BucketSpec): string => `KV_${name}`
export const storeStream = ({ name }: StoreSpec): string => `OBJ_${name}`
