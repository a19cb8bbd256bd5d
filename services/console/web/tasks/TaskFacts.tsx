/** Facts about a task. */
import { Anchor, Badge, Progress, Text } from "@mantine/core"
import { DateTime } from "effect"
import { Link } from "wouter"
import type { TaskStatus } from "../../../../shared/contract/Operation.ts"
import type { TaskView } from "../../api/Tasks.ts"
import { ago, count, milliseconds, moment } from "../data/Format.ts"
import { Id } from "../parts/Copy.tsx"
import { requestPath } from "../parts/RequestFacts.tsx"

export const statuses: Readonly<Record<TaskStatus, { readonly color: string; readonly text: string }>> = {
  queued: { color: "gray", text: "waiting" },
  in_progress: { color: "iris", text: "running" },
  completed: { color: "teal", text: "completed" },
  failed: { color: "red", text: "failed" },
  cancelled: { color: "gray", text: "cancelled" }
}

/** Content that a client can download. */
export interface Content {
  readonly label: string
  readonly path: string
  readonly name: string
}

export const contentsOf = ({ batch, id, status }: TaskView): ReadonlyArray<Content> => {
  if (batch === null) {
    const isThere = status === "completed"
    return isThere ? [{ label: "Download the answer", path: `/v1/tasks/${id}/content`, name: id }] : []
  }
  const files = [["Download the answers", batch.output, "answers"], [
    "Download the errors",
    batch.errors,
    "errors"
  ]] as const
  return files.flatMap(([label, file, name]) =>
    file === null ? [] : [{ label, path: `/v1/files/${file}/content`, name: `${id}-${name}` }]
  )
}

export const hasEnded = ({ endedAt }: TaskView): boolean => endedAt !== null

interface Shown {
  readonly of: TaskView
}

export const TaskName = ({ of: { id, operation, traceId } }: Shown) => (
  <div>
    {traceId === null
      ? <Text size="sm" className="mono">{operation}</Text>
      : <Anchor component={Link} href={requestPath(traceId)} size="sm" className="mono">{operation}</Anchor>}
    <Id value={id} label={`Copy ${id}`} />
  </div>
)

export const TaskModel = ({ of: { model, pool, provider } }: Shown) => (
  <div>
    <Text size="sm" fw={550} style={{ overflowWrap: "anywhere" }}>{model === "" ? "–" : model}</Text>
    <Text size="xs" c="dimmed">
      {[...(provider === null ? [] : [provider]), ...(pool === "default" ? [] : [`pool ${pool}`])].join(" · ")}
    </Text>
  </div>
)

const BatchProgress = ({ id, of }: { readonly id: string; readonly of: NonNullable<TaskView["batch"]> }) => {
  const { completed, failed, total } = of
  const share = (lines: number) => total === 0 ? 0 : 100 * lines / total
  return (
    <div>
      <Progress.Root size="sm" mt={4} miw={110}>
        <Progress.Section value={share(completed)} color="teal" aria-label={`Answered requests of ${id}`} />
        <Progress.Section value={share(failed)} color="red" aria-label={`Failed requests of ${id}`} />
      </Progress.Root>
      <Text size="xs" c="dimmed" className="numeric" style={{ whiteSpace: "nowrap" }}>
        {`${count(completed + failed)} of ${count(total)}${failed === 0 ? "" : `, ${count(failed)} failed`}`}
      </Text>
    </div>
  )
}

/** A batch has further states, which clients see. */
const stateText = ({ batch, status }: TaskView): string =>
  (batch === null || status === "queued" ? statuses[status].text : batch.status).replace("_", " ")

export const TaskState = ({ of }: Shown) => (
  <div>
    <Badge color={statuses[of.status].color} variant="light" tt="none" miw="max-content">{stateText(of)}</Badge>
    {of.error === null ? null : <Text size="xs" c="dimmed">{of.error}</Text>}
    {of.claims > 1 && <Text size="xs" c="dimmed">{`begun ${of.claims} times`}</Text>}
    {of.batch === null ? null : <BatchProgress id={of.id} of={of.batch} />}
  </div>
)

export const TaskAge = ({ of: { createdAt } }: Shown) => (
  <Text size="sm" title={moment(createdAt)} style={{ whiteSpace: "nowrap" }}>{ago(createdAt)}</Text>
)

/** The time from a task's creation to its end, or until now. */
export const duration = ({ createdAt, endedAt }: TaskView): string =>
  milliseconds((endedAt ?? DateTime.nowUnsafe()).epochMilliseconds - createdAt.epochMilliseconds)
