/**
 * The rights of every service on NATS: one table from which the server's permissions, their documentation and their test derive.
 *
 * Each service has one identity per account (`Account` in `Storage.ts`), which may publish and subscribe only to the subjects that
 * its rights need. A worker serves only its own workload. It cannot submit jobs, or read keys or other workers' answers.
 * Permissions do not restrict the subjects to which JetStream sends its answers, so workers have no access to the control account.
 */
import { consumerName } from "../../nats/WorkQueue.ts"
import { type Workload, workloads } from "../../contract/Operation.ts"
import { inboxPrefix } from "../../nats/Credentials.ts"
import type { Account, BucketSpec, EventStreamSpec, StoreSpec, WorkQueueSpec } from "../../nats/Storage.ts"
import { accounts, buckets, bucketStream, events, queues, stores, storeStream } from "../../nats/Storage.ts"
import * as Subjects from "../protocol/Subjects.ts"

/** One activity of a service, and its subjects. */
export interface Right {
  readonly does: string
  /** Default: the data account. */
  readonly account?: Account
  readonly publish: ReadonlyArray<string>
  readonly subscribe?: ReadonlyArray<string>
  /** Whether the service may answer each request that it receives on these subjects once. */
  readonly answers?: true
}

const api = (word: string): string => `$JS.API.${word}`

/** The streams of a workload's jobs and tasks, one for each queue and version. */
const jobStreamsOf = (workload: Workload) => Subjects.queuesOf(workload).flatMap(jobStreamsIn)
const jobStreamsIn = (queue: Subjects.QueueName) =>
  Subjects.versionsOf(queue).map((version) => ({ queue, version, stream: Subjects.jobStream(queue, version) }))
const batchStreams = jobStreamsIn(Subjects.batchQueue)
const jobStreams = [...workloads.flatMap(jobStreamsOf), ...batchStreams]

const submitsJobs: Right = {
  does: "submits jobs of every workload and receives their answers",
  publish: [
    ...jobStreams.map(({ queue, version }) => Subjects.jobStreamSubjects(queue, version)),
    ...jobStreams.map(({ stream }) => api(`CONSUMER.INFO.${stream}.*`)),
    "ctl.>",
    "in.>"
  ],
  subscribe: ["r.>"]
}

type JobStream = ReturnType<typeof jobStreamsIn>[number]

const takes = ({ queue, stream, version }: JobStream): ReadonlyArray<string> => [
  api(`CONSUMER.INFO.${stream}.*`),
  Subjects.pullSubject(queue, "*", version),
  `$JS.ACK.${stream}.>`,
  // newer servers put domain and account before the stream
  `$JS.ACK.*.*.${stream}.>`
]

const takesBatches: Right = { does: "takes batches", publish: batchStreams.flatMap(takes) }

/** The streams of the queues whose tasks may be lines of batches. */
const lineStreams = jobStreams.filter(({ queue }) => Subjects.isByOwner(queue) && queue !== Subjects.batchQueue)

const submitsLines: Right = {
  does: "submits lines of batches as tasks of every workload",
  publish: lineStreams.map(({ queue, version }) => Subjects.jobStreamSubjects(queue, version))
}

const serves = (workload: Workload): Right => ({
  does: `takes and answers jobs of ${workload}`,
  publish: [...jobStreamsOf(workload).flatMap(takes), `r.${workload}.>`],
  subscribe: [`ctl.${workload}.>`, `in.${workload}.>`]
})

const sharesSlots: Right = {
  does:
    "announces tenants' taken slots and waiting jobs, and receives those of other ingresses and the slots of workers",
  publish: [Subjects.occupancyInbox],
  subscribe: [Subjects.occupancyInbox, Subjects.slotsInbox]
}

const admitsWork: Right = {
  does: "admits the work of tasks",
  publish: [],
  subscribe: [Subjects.admittersSubjects, Subjects.admitInbox("*")],
  answers: true
}

const asksForWork = (workload: Workload): Right => ({
  does: "asks ingress to admit the work of tasks",
  publish: [Subjects.admittersSubject(workload), Subjects.admitSubject(workload, "*")]
})

const announcesSlots = (workload: Workload): Right => ({
  does: `announces its free slots for ${workload}`,
  publish: [Subjects.slotsSubjects(workload)]
})

const hints: Right = {
  does: "publishes hints that tasks have new pages or have ended",
  publish: [Subjects.taskHintSubjects]
}

const followsTasks: Right = {
  ...hints,
  does: "publishes and receives hints that tasks have new pages or have ended",
  subscribe: [Subjects.taskHintSubjects]
}

/** Reads a stream from its start with its own consumer. */
const consumes = (stream: string): ReadonlyArray<string> => [
  api(`CONSUMER.CREATE.${stream}`),
  api(`CONSUMER.CREATE.${stream}.>`),
  api(`CONSUMER.INFO.${stream}.*`),
  api(`CONSUMER.DELETE.${stream}.*`),
  `$JS.FC.${stream}.>`
]

const looksUp = (stream: string): ReadonlyArray<string> => [
  api(`STREAM.INFO.${stream}`),
  api(`STREAM.MSG.GET.${stream}`)
]

const watches = (bucket: BucketSpec): Right => ({
  does: `reads and watches all of ${bucket.name}`,
  account: bucket.account,
  publish: [...looksUp(bucketStream(bucket)), ...consumes(bucketStream(bucket))]
})

const followsAll = (bucket: BucketSpec): Right => ({
  ...watches(bucket),
  does: `reads and follows all of ${bucket.name}`,
  publish: [...watches(bucket).publish, api(`CONSUMER.MSG.NEXT.${bucketStream(bucket)}.*`)]
})

const readsFrom = (bucket: BucketSpec): Right => ({
  does: `reads ${bucket.name}`,
  account: bucket.account,
  publish: looksUp(bucketStream(bucket))
})

const writes = (bucket: BucketSpec): Right => ({
  does: `reads and writes ${bucket.name}`,
  account: bucket.account,
  publish: [...looksUp(bucketStream(bucket)), `$KV.${bucket.name}.>`]
})

const purges = (bucket: BucketSpec): Right => ({
  does: `deletes many records of ${bucket.name}`,
  account: bucket.account,
  publish: [api(`STREAM.PURGE.${bucketStream(bucket)}`)]
})

const fetches = (store: StoreSpec): Right => ({
  does: `reads objects of ${store.name}`,
  publish: [api("INFO"), ...looksUp(storeStream(store))]
})

const keeps = (store: StoreSpec): Right => ({
  does: `reads and writes objects of ${store.name}`,
  publish: [...fetches(store).publish, `$O.${store.name}.>`, api(`STREAM.PURGE.${storeStream(store)}`)]
})

const storesEvents = ({ name, subjects }: EventStreamSpec, about: string): Right => ({
  does: `stores usage events of ${about} in ${name}`,
  publish: [api(`STREAM.INFO.${name}`), subjects.replace(/>$/, about)]
})

const storesAndReads = ({ account, name, subjects }: EventStreamSpec): Right => ({
  does: `stores and reads the events of ${name}`,
  account,
  publish: [...looksUp(name), subjects]
})

const follows = ({ name }: EventStreamSpec): Right => ({
  does: `reads all events of ${name}`,
  publish: [...looksUp(name), ...consumes(name), api(`CONSUMER.MSG.NEXT.${name}.*`)]
})

const addsTo = ({ name, subjects }: WorkQueueSpec): Right => ({
  does: `adds to the queue ${name}`,
  publish: [subjects]
})

const takesFrom = ({ name }: WorkQueueSpec): Right => ({
  does: `takes from the queue ${name}`,
  publish: [
    api(`CONSUMER.INFO.${name}.${consumerName}`),
    api(`CONSUMER.MSG.NEXT.${name}.${consumerName}`),
    `$JS.ACK.${name}.>`,
    `$JS.ACK.*.*.${name}.>`
  ]
})

const reportsState: Right = {
  does: "reports its state",
  publish: [],
  subscribe: [Subjects.presenceSubject],
  answers: true
}

const agreesOnCatalogue: Right = {
  does: "agrees with all processes on edits of the catalogue",
  publish: [Subjects.catalogueSubject],
  subscribe: [Subjects.catalogueSubject],
  answers: true
}

const oversees: Right = {
  does: "requests the state of every process and reads every queue",
  publish: [
    Subjects.presenceSubject,
    ...jobStreams.flatMap(({ stream }) => [api(`CONSUMER.INFO.${stream}.*`), api(`STREAM.MSG.GET.${stream}`)])
  ]
}

const repairs: Right = {
  does: "recreates consumers of job queues that cannot deliver",
  publish: jobStreams.flatMap(({ queue, stream, version }) => [
    api(`STREAM.INFO.${stream}`),
    api(`CONSUMER.DELETE.${stream}.*`),
    api(`CONSUMER.CREATE.${stream}.*.${Subjects.poolSubjects(queue, "*", version)}`)
  ])
}

/** The rights to deliver the events of tasks to webhook receivers. */
const delivers: ReadonlyArray<Right> = [
  readsFrom(buckets.webhookEndpoints),
  writes(buckets.webhookDeliveries),
  addsTo(queues.webhooks),
  takesFrom(queues.webhooks)
]

/** What every worker needs: its jobs, the ledger of its providers' limits, and its usage events. */
const works = (workload: Workload): ReadonlyArray<Right> => [
  serves(workload),
  announcesSlots(workload),
  reportsState,
  agreesOnCatalogue,
  writes(buckets.providerLimits),
  ...(Subjects.isByOwner(Subjects.taskQueueOf(workload))
    ? [writes(buckets.tasks), writes(buckets.batchLines), asksForWork(workload), hints, ...delivers]
    : []),
  storesEvents(events.usage, workload)
]

/** The right of administrators; no service has it. */
const provisions: Right = {
  does: "creates, changes, backs up and restores every stream, consumer, bucket and store",
  publish: ["$JS.API.>", "$JS.FC.>", "$JS.SNAPSHOT.>"]
}
const provisionsControl: Right = { ...provisions, account: "control" }

/** The rights of each service. */
export const rights = {
  ingress: [
    submitsJobs,
    sharesSlots,
    admitsWork,
    reportsState,
    agreesOnCatalogue,
    watches(buckets.apiKeys),
    watches(buckets.teams),
    watches(buckets.usageSpend),
    writes(buckets.keyLimits),
    watches(buckets.owners),
    writes(buckets.owners),
    watches(buckets.principals),
    writes(buckets.principals),
    writes(buckets.responses),
    purges(buckets.responses),
    watches(buckets.tasks),
    writes(buckets.tasks),
    purges(buckets.tasks),
    writes(buckets.batches),
    purges(buckets.batches),
    followsTasks,
    writes(buckets.videoTasks),
    fetches(stores.results),
    keeps(stores.videoContent),
    watches(buckets.clientFiles),
    writes(buckets.clientFiles),
    purges(buckets.clientFiles),
    keeps(stores.clientFiles)
  ],
  chat: [...works("chat"), keeps(stores.compactions), writes(buckets.responses), purges(buckets.responses)],
  images: [...works("images"), keeps(stores.results)],
  video: [...works("video"), asksForWork("video"), writes(buckets.videoTasks), keeps(stores.videoContent)],
  embeddings: works("embeddings"),
  rerank: works("rerank"),
  speech: works("speech"),
  batches: [
    takesBatches,
    submitsLines,
    reportsState,
    agreesOnCatalogue,
    writes(buckets.batches),
    followsAll(buckets.batchLines),
    writes(buckets.batchLines),
    purges(buckets.batchLines),
    watches(buckets.clientFiles),
    writes(buckets.clientFiles),
    purges(buckets.clientFiles),
    keeps(stores.clientFiles),
    readsFrom(buckets.webhookEndpoints),
    writes(buckets.webhookDeliveries),
    addsTo(queues.webhooks)
  ],
  console: [
    watches(buckets.apiKeys),
    writes(buckets.apiKeys),
    watches(buckets.teams),
    writes(buckets.teams),
    watches(buckets.principals),
    storesAndReads(events.keyChanges),
    // to end the sessions of a person
    watches(buckets.consoleSessions),
    writes(buckets.consoleSessions),
    follows(events.usage),
    watches(buckets.usageCounters),
    writes(buckets.usageCounters),
    watches(buckets.usageSpend),
    writes(buckets.usageSpend),
    watches(buckets.webhookEndpoints),
    writes(buckets.webhookEndpoints),
    watches(buckets.webhookDeliveries),
    writes(buckets.webhookDeliveries),
    addsTo(queues.webhooks),
    writes(buckets.tasks),
    purges(buckets.tasks),
    writes(buckets.batches),
    purges(buckets.batches),
    hints,
    agreesOnCatalogue,
    oversees,
    repairs
  ],
  admin: [
    provisions,
    provisionsControl,
    writes(buckets.apiKeys),
    writes(buckets.teams),
    writes(buckets.owners),
    storesAndReads(events.keyChanges),
    // to remove the endpoints of revoked keys
    writes(buckets.webhookEndpoints)
  ]
} satisfies Record<Workload, ReadonlyArray<Right>> & Record<string, ReadonlyArray<Right>>

/** A service with its own identity on NATS. */
export type NatsService = keyof typeof rights
export const natsServices = Object.keys(rights) as ReadonlyArray<NatsService>

/** A service in one of its accounts. */
export interface Identity {
  readonly service: NatsService
  readonly account: Account
  /** For example `ingress` or `ingress-control`. */
  readonly name: string
}

const rightsIn = (all: ReadonlyArray<Right>, account: Account): ReadonlyArray<Right> =>
  all.filter((right) => (right.account ?? "data") === account)

/** A service's rights in an account. */
export const rightsOf = (service: NatsService, account: Account): ReadonlyArray<Right> =>
  rightsIn(rights[service], account)

export const identities: ReadonlyArray<Identity> = natsServices.flatMap((service) =>
  accounts
    .filter((account) => rightsOf(service, account).length > 0)
    .map((account) => ({ service, account, name: account === "data" ? service : `${service}-${account}` }))
)

/** A bucket in the data account, where earlier releases store it. */
const inData = ({ name }: BucketSpec): BucketSpec => ({ name, account: "data" })

/**
 * The rights in the data account that processes of earlier releases need until they are replaced. They may read keys there but not
 * change them: provisioning has moved the keys, so a change would be lost.
 */
const formerRights: Partial<Record<NatsService, ReadonlyArray<Right>>> = {
  ingress: [watches(inData(buckets.apiKeys)), watches(inData(buckets.usageSpend)), writes(buckets.providerLimits)],
  console: [
    watches(inData(buckets.apiKeys)),
    { does: `reads the events of ${events.keyChanges.name}`, publish: looksUp(events.keyChanges.name) },
    writes(inData(buckets.consoleSessions)),
    watches(inData(buckets.usageCounters)),
    writes(inData(buckets.usageCounters)),
    writes(inData(buckets.usageSpend))
  ]
}

export interface Permissions {
  readonly publish: ReadonlyArray<string>
  readonly subscribe: ReadonlyArray<string>
  readonly answers: boolean
}

/** The subjects of an identity's rights and its inbox. `withFormer` adds what processes of earlier releases need. */
export const permissionsOf = (
  { account, service }: Pick<Identity, "account" | "service">,
  options: { readonly withFormer: boolean } = { withFormer: false }
): Permissions => {
  const former = options.withFormer ? rightsIn(formerRights[service] ?? [], account) : []
  const all = [...rightsOf(service, account), ...former]
  return {
    publish: [...new Set(all.flatMap(({ publish }) => publish))],
    subscribe: [`${inboxPrefix(service)}.>`, ...new Set(all.flatMap(({ subscribe = [] }) => subscribe))],
    answers: all.some(({ answers }) => answers === true)
  }
}
