/** Facts about a task. */
import { Anchor, Badge, Text } from "@mantine/core"
import { DateTime } from "effect"
import { Link } from "wouter"
import type { TaskStatus } from "../../../../shared/contract/Operation.ts"
import type { TaskView } from "../../api/Tasks.ts"
import { ago, milliseconds, moment } from "../data/Format.ts"
import { Id } from "../parts/Copy.tsx"
import { requestPath } from "../parts/RequestFacts.tsx"

export const statuses: Readonly<Record<TaskStatus, { readonly color: string; readonly text: string }>> = {
  queued: { color: "gray", text: "waiting" },
  in_progress: { color: "iris", text: "running" },
  completed: { color: "teal", text: "completed" },
  failed: { color: "red", text: "failed" },
  cancelled: { color: "gray", text: "cancelled" }
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
    <Text size="sm" fw={550} style={{ overflowWrap: "anywhere" }}>{model}</Text>
    <Text size="xs" c="dimmed">
      {[...(provider === null ? [] : [provider]), ...(pool === "default" ? [] : [`pool ${pool}`])].join(" · ")}
    </Text>
  </div>
)

export const TaskState = ({ of: { claims, error, status } }: Shown) => (
  <div>
    <Badge color={statuses[status].color} variant="light" tt="none" miw="max-content">{statuses[status].text}</Badge>
    {error === null ? null : <Text size="xs" c="dimmed">{error}</Text>}
    {claims > 1 && <Text size="xs" c="dimmed">{`begun ${claims} times`}</Text>}
  </div>
)

export const TaskAge = ({ of: { createdAt } }: Shown) => (
  <Text size="sm" title={moment(createdAt)} style={{ whiteSpace: "nowrap" }}>{ago(createdAt)}</Text>
)

/** From its creation to its end, or until now. */
export const duration = ({ createdAt, endedAt }: TaskView): string =>
  milliseconds((endedAt ?? DateTime.nowUnsafe()).epochMilliseconds - createdAt.epochMilliseconds)
