/**
 * The idempotency keys of tasks. A key becomes free again if its task was refused, ended before a provider did any work, or was
 * deleted. A key whose task does not exist is not free: its task is about to be created.
 */
import { Option, type Schedule } from "effect"
import type { JobError } from "../../contract/JobError.ts"
import * as KeyBindings from "../../records/KeyBindings.ts"
import type { RecordStore } from "../RecordStore.ts"
import type { TaskRecord } from "../TaskRecord.ts"
import { hasEnded } from "../TaskState.ts"
import { recordKey } from "./TaskPages.ts"

/** Refusals by ingress's rules or by a provider: nothing was made, and nothing is billed. */
const refusals: ReadonlySet<JobError["_tag"]> = new Set([
  "InvalidRequest",
  "ModelNotFound",
  "ModelUnsuitable",
  "ReferenceNotFound",
  "ProviderRejected",
  "ProviderRateLimited"
])

const cameToNothing = ({ error, providerTask, status }: TaskRecord): boolean =>
  hasEnded(status) && status !== "completed" && (providerTask === null || (error !== null && refusals.has(error._tag)))

export type TaskKeys = KeyBindings.KeyBindings<TaskRecord>

export const make = (
  bucket: KeyBindings.KeyBindingsOptions<TaskRecord>["bucket"],
  records: Pick<RecordStore, "find">,
  patience: Schedule.Schedule<unknown>
): TaskKeys =>
  KeyBindings.make({
    bucket,
    find: (owner, id) => records.find(recordKey(owner, id)),
    isFree: Option.exists(cameToNothing),
    patience
  })
