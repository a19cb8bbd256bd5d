/**
 * Who may do what on NATS: the one table from which the server's permissions, its documentation and its test are made.
 *
 * Each service has one identity in each account that it is in (`Account` in `Storage.ts`). It may publish and hear what its
 * rights there need and nothing else; in particular a worker serves its own workload only, cannot make jobs, and cannot
 * read keys or the answers of others. Permissions do not hold for the reply subjects that JetStream answers to, which is
 * why workers are not in the control account.
 */
import { type Workload, workloads } from "../../contract/Operation.ts"
import { inboxPrefix } from "../../nats/Inbox.ts"
import {
  type Account,
  accounts,
  buckets,
  bucketStream,
  events,
  type KeptBucket,
  type KeptEvents,
  type KeptStore,
  stores,
  storeStream
} from "../../nats/Storage.ts"
import {
  jobStream,
  jobStreamSubjects,
  occupancyInbox,
  presenceSubject,
  pullSubject,
  slotsInbox,
  slotsSubjects
} from "../protocol/Subjects.ts"

/** One thing that a service does, and the subjects that it takes. */
export interface Right {
  readonly does: string
  /** Where; absent: in the data account. */
  readonly account?: Account
  readonly publish: ReadonlyArray<string>
  readonly subscribe?: ReadonlyArray<string>
  /** Whether it may answer, once, whoever asked it. */
  readonly answers?: true
}

const api = (word: string): string => `$JS.API.${word}`

/** Has jobs done: publishes them, hears their answers, and talks to the workers that do them. */
const submitsJobs: Right = {
  does: "submits jobs of every workload and hears their answers",
  publish: [
    ...workloads.map(jobStreamSubjects),
    ...workloads.map((workload) => api(`CONSUMER.INFO.${jobStream(workload)}.*`)),
    "ctl.>",
    "in.>"
  ],
  subscribe: ["r.>"]
}

/** Takes jobs of any pool of one workload, answers and acknowledges them. */
const serves = (workload: Workload): Right => ({
  does: `takes and answers jobs of ${workload}`,
  publish: [
    api(`CONSUMER.INFO.${jobStream(workload)}.*`),
    pullSubject(workload, "*"),
    `$JS.ACK.${jobStream(workload)}.>`,
    // the form that newer servers may use, with domain and account first
    `$JS.ACK.*.*.${jobStream(workload)}.>`,
    `r.${workload}.>`
  ],
  subscribe: [`ctl.${workload}.>`, `in.${workload}.>`]
})

/** Shares slots between tenants, together with every other ingress. */
const sharesSlots: Right = {
  does: "tells other ingresses what tenants have and want of the slots, and hears the slots of workers",
  publish: [occupancyInbox],
  subscribe: [occupancyInbox, slotsInbox]
}

/** Lets ingress know how many jobs it works on at once. */
const announcesSlots = (workload: Workload): Right => ({
  does: `announces its slots of ${workload}`,
  publish: [slotsSubjects(workload)]
})

/** Reads a stream from its beginning on, by a consumer of its own. */
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

const watches = (bucket: KeptBucket): Right => ({
  does: `reads and watches all of ${bucket.name}`,
  account: bucket.account,
  publish: [...looksUp(bucketStream(bucket)), ...consumes(bucketStream(bucket))]
})

const writes = (bucket: KeptBucket): Right => ({
  does: `reads and writes ${bucket.name}`,
  account: bucket.account,
  publish: [...looksUp(bucketStream(bucket)), `$KV.${bucket.name}.>`]
})

const fetches = (store: KeptStore): Right => ({
  does: `fetches from ${store.name}`,
  publish: [api("INFO"), ...looksUp(storeStream(store))]
})

const keeps = (store: KeptStore): Right => ({
  does: `fetches from and keeps in ${store.name}`,
  publish: [...fetches(store).publish, `$O.${store.name}.>`, api(`STREAM.PURGE.${storeStream(store)}`)]
})

/** Stores events, and reads none. */
const reports = ({ name, subjects }: KeptEvents, about: string): Right => ({
  does: `stores events of ${about} in ${name}`,
  publish: [api(`STREAM.INFO.${name}`), subjects.replace(/>$/, about)]
})

/** Stores events and reads them, by their places or from one place on. */
const records = ({ account, name, subjects }: KeptEvents): Right => ({
  does: `stores and reads the events of ${name}`,
  account,
  publish: [...looksUp(name), subjects]
})

const follows = ({ name }: KeptEvents): Right => ({
  does: `reads all events of ${name}`,
  publish: [...looksUp(name), ...consumes(name), api(`CONSUMER.MSG.NEXT.${name}.*`)]
})

/** Says what it is doing when it is asked. */
const tells: Right = { does: "says what it is doing", publish: [], subscribe: [presenceSubject], answers: true }

/** Asks every process what it is doing, and every queue how long it is. */
const oversees: Right = {
  does: "asks every process what it is doing and looks into every queue",
  publish: [
    presenceSubject,
    ...workloads.flatMap((workload) => [
      api(`CONSUMER.INFO.${jobStream(workload)}.*`),
      api(`STREAM.MSG.GET.${jobStream(workload)}`)
    ])
  ]
}

/** What every worker needs: its jobs, the ledger of what its providers may be asked, and where it says what was used. */
const works = (workload: Workload): ReadonlyArray<Right> => [
  serves(workload),
  announcesSlots(workload),
  tells,
  writes(buckets.providerLimits),
  reports(events.usage, workload)
]

/** Makes and changes streams, consumers, buckets and stores, takes them away as files and back: what no service may. */
const provisions: Right = {
  does: "creates, changes, backs up and restores every stream, consumer, bucket and store",
  publish: ["$JS.API.>", "$JS.FC.>", "$JS.SNAPSHOT.>"]
}
const provisionsControl: Right = { ...provisions, account: "control" }

/** What each service does on NATS. */
export const rights = {
  ingress: [
    submitsJobs,
    sharesSlots,
    tells,
    watches(buckets.apiKeys),
    watches(buckets.usageSpend),
    writes(buckets.keyLimits),
    writes(buckets.videoTasks),
    fetches(stores.results),
    keeps(stores.videoContent)
  ],
  chat: [...works("chat"), keeps(stores.compactions)],
  images: [...works("images"), keeps(stores.results)],
  video: [...works("video"), writes(buckets.videoTasks), keeps(stores.videoContent)],
  embeddings: works("embeddings"),
  rerank: works("rerank"),
  speech: works("speech"),
  console: [
    watches(buckets.apiKeys),
    writes(buckets.apiKeys),
    records(events.keyChanges),
    writes(buckets.consoleSessions),
    follows(events.usage),
    watches(buckets.usageCounters),
    writes(buckets.usageCounters),
    writes(buckets.usageSpend),
    oversees
  ],
  admin: [provisions, provisionsControl, writes(buckets.apiKeys), records(events.keyChanges)]
} satisfies Record<Workload, ReadonlyArray<Right>> & Record<string, ReadonlyArray<Right>>

/** A service with an identity of its own on NATS. */
export type NatsService = keyof typeof rights
export const natsServices = Object.keys(rights) as ReadonlyArray<NatsService>

/** A service in one of the accounts that it is in. */
export interface Identity {
  readonly service: NatsService
  readonly account: Account
  /** Such as `ingress` and `ingress-control`. */
  readonly name: string
}

const rightsIn = (all: ReadonlyArray<Right>, account: Account): ReadonlyArray<Right> =>
  all.filter((right) => (right.account ?? "data") === account)

/** What a service does in an account. */
export const rightsOf = (service: NatsService, account: Account): ReadonlyArray<Right> =>
  rightsIn(rights[service], account)

export const identities: ReadonlyArray<Identity> = natsServices.flatMap((service) =>
  accounts
    .filter((account) => rightsOf(service, account).length > 0)
    .map((account) => ({ service, account, name: account === "data" ? service : `${service}-${account}` }))
)

/** A bucket as versions kept it that knew no control account. */
const inData = ({ name }: KeptBucket): KeptBucket => ({ name, account: "data" })

/**
 * What processes of such a version do in the data account until they are replaced. Keys can be read there, but no longer
 * changed: provisioning has moved them, and a change would be lost.
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

/** The subjects that its rights in an account come to, if need be with those of the former version, and its inbox. */
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
