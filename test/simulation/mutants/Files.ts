/** The files with mutants. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { pathToFileURL } from "node:url"

const project = join(import.meta.dirname, "../../..")

export const textOf = (file: string): string => readFileSync(join(project, file), "utf8")
export const urlOf = (file: string): string => pathToFileURL(join(project, file)).href

export const server = "shared/bus/worker/JobServer.ts"
export const reply = "shared/bus/worker/JobReply.ts"
export const source = "shared/bus/worker/JobSource.ts"
export const tracker = "shared/bus/ingress/JobTracker.ts"
export const links = "shared/bus/ingress/WorkerLinks.ts"
export const watch = "shared/bus/ingress/WorkerWatch.ts"
export const publications = "shared/bus/ingress/Publications.ts"
export const receiver = "shared/bus/ingress/BundleReceiver.ts"
export const sender = "shared/bus/worker/BundleSender.ts"
export const pulls = "shared/bus/worker/PullRequests.ts"
export const state = "shared/bus/protocol/JobState.ts"
export const connect = "shared/nats/Connect.ts"
export const connection = "shared/nats/Nats.ts"
export const writer = "shared/nats/EventWriter.ts"
export const life = "shared/worker/JobLife.ts"
export const taskState = "shared/tasks/TaskState.ts"
export const answerWork = "shared/tasks/answers/AnswerWork.ts"
export const holdDesk = "shared/limits/HoldDesk.ts"
export const recent = "shared/usage/RecentEvents.ts"
export const usageEvent = "shared/usage/UsageEvent.ts"
export const taskUsage = "shared/tasks/TaskUsage.ts"
export const bucket = "shared/nats/KeyValue.ts"
export const ledger = "shared/limits/Ledger.ts"
export const lease = "shared/limits/ReplicaLease.ts"
export const occupancy = "shared/bus/fairness/PoolOccupancy.ts"
export const gate = "shared/provider/routing/Gate.ts"
export const history = "shared/provider/routing/AttemptHistory.ts"

export const pool = "shared/bus/ingress/JobPool.ts"
