/** Tasks: requests in the background, and batches. */
import { Box, Button, Group, Modal, Select, Stack, Text, VisuallyHidden } from "@mantine/core"
import { useMediaQuery } from "@mantine/hooks"
import { StopwatchIcon } from "@radix-ui/react-icons"
import { useState } from "react"
import type { TaskQuery, TaskView } from "../../api/Tasks.ts"
import { counted, size } from "../data/Format.ts"
import { useKeyNames, useKeys, useTasks } from "../data/Queries.ts"
import { type Column, DataTable } from "../parts/DataTable.tsx"
import { Empty, Loaded } from "../parts/Feedback.tsx"
import { Live } from "../parts/Live.tsx"
import { Page } from "../parts/Page.tsx"
import { DeleteTask } from "../tasks/DeleteTask.tsx"
import { DownloadAnswer } from "../tasks/DownloadAnswer.tsx"
import { type Content, duration, statuses, TaskAge, TaskModel, TaskName, TaskState } from "../tasks/TaskFacts.tsx"
import { type Acts, TaskMenu } from "../tasks/TaskMenu.tsx"

interface Listed {
  readonly tasks: ReadonlyArray<TaskView>
  readonly nameOf: (key: string) => string
  readonly acts: Acts
}

const oneLine = { style: { whiteSpace: "nowrap" } } as const

const columnsOf = ({ acts, nameOf }: Listed): ReadonlyArray<Column<TaskView>> => [
  { head: "Task", cell: (task) => <TaskName of={task} /> },
  { head: "Model", props: { maw: 200 }, cell: (task) => <TaskModel of={task} /> },
  { head: "Key", props: { maw: 160 }, cell: ({ key }) => <Text size="sm" truncate>{nameOf(key)}</Text> },
  { head: "State", cell: (task) => <TaskState of={task} /> },
  { head: "Created", cell: (task) => <TaskAge of={task} /> },
  { head: "Duration", isNumeric: true, props: oneLine, cell: duration },
  { head: "Answer", isNumeric: true, props: oneLine, cell: ({ bytes }) => bytes === null ? "–" : size(bytes) },
  { head: <VisuallyHidden>Actions</VisuallyHidden>, props: { w: 48 }, cell: (task) => <TaskMenu of={task} {...acts} /> }
]

const Cards = ({ acts, nameOf, tasks }: Listed) => (
  <Stack component="ul" gap={0} p={0} m={0} aria-label="Tasks">
    {tasks.map((task) => (
      <Stack component="li" className="list-card" key={task.id} gap="xs" p="md">
        <Group justify="space-between" wrap="nowrap" align="flex-start">
          <TaskName of={task} />
          <TaskMenu of={task} {...acts} />
        </Group>
        <Group justify="space-between" align="flex-start">
          <TaskModel of={task} />
          <TaskState of={task} />
        </Group>
        <Group justify="space-between">
          <Text size="sm" c="dimmed" truncate>{nameOf(task.key)}</Text>
          <Text size="sm" c="dimmed">
            {[duration(task), ...(task.bytes === null ? [] : [size(task.bytes)])].join(" · ")}
          </Text>
          <TaskAge of={task} />
        </Group>
      </Stack>
    ))}
  </Stack>
)

const noTasks = (
  <Empty icon={StopwatchIcon} title="No tasks">
    Batches appear here, and requests whose answers outlive the connection: with background, Prefer: respond-async or an
    Idempotency-Key.
  </Empty>
)

export const Tasks = () => {
  const isNarrow = useMediaQuery("(max-width: 75em)", undefined, { getInitialValueInEffect: false })
  const [isLive, setLive] = useState(true)
  const [wanted, want] = useState<Pick<TaskQuery, "key" | "status">>({})
  /** `after` of each page from the second to this one. */
  const [trail, go] = useState<ReadonlyArray<string>>([])
  const [downloaded, download] = useState<Content>()
  const [removed, remove] = useState<TaskView>()
  const after = trail.at(-1)
  const query = useTasks({ ...wanted, ...(after === undefined ? {} : { after }) }, isLive)
  const keys = useKeys()
  const nameOf = useKeyNames()
  const filter = (change: { readonly [Name in keyof typeof wanted]: string | null }) => {
    const { key = wanted.key ?? null, status = wanted.status ?? null } = change
    want({ ...(key === null ? {} : { key }), ...(status === null ? {} : { status: status as keyof typeof statuses }) })
    go([])
  }
  return (
    <Page
      title="Tasks"
      description="Requests in the background, which expire after two days, and batches: their state, never their content."
      actions={<Live isLive={isLive} isFailing={query.isError} toggle={() => setLive(!isLive)} />}
    >
      <Box className="card">
        <Loaded query={query}>
          {({ next, tasks }) => {
            const listed = { tasks, nameOf, acts: { download, remove } }
            return (
              <>
                <Group p="md" gap="sm">
                  <Select
                    aria-label="Key"
                    placeholder="All keys"
                    clearable
                    searchable
                    value={wanted.key ?? null}
                    onChange={(key) => filter({ key })}
                    data={(keys.data ?? []).map(({ id, name }) => ({ value: id, label: name }))}
                  />
                  <Select
                    aria-label="State"
                    placeholder="All states"
                    clearable
                    value={wanted.status ?? null}
                    onChange={(status) => filter({ status })}
                    data={Object.entries(statuses).map(([value, { text }]) => ({ value, label: text }))}
                  />
                  <Text size="sm" c="dimmed" role="status">{counted(tasks.length, "task")}</Text>
                </Group>
                {tasks.length === 0
                  ? noTasks
                  : isNarrow
                  ? <Cards {...listed} />
                  : (
                    <DataTable
                      rows={tasks}
                      columns={columnsOf(listed)}
                      keyOf={({ id }) => id}
                      verticalSpacing="xs"
                      horizontalSpacing="md"
                      highlightOnHover
                      aria-label="Tasks"
                    />
                  )}
                {(trail.length > 0 || next !== null) && (
                  <Group justify="center" p="md">
                    <Button variant="default" disabled={trail.length === 0} onClick={() => go(trail.slice(0, -1))}>
                      Newer
                    </Button>
                    <Button variant="default" disabled={next === null} onClick={() => go([...trail, next ?? ""])}>
                      Older
                    </Button>
                  </Group>
                )}
              </>
            )
          }}
        </Loaded>
      </Box>
      <Modal opened={downloaded !== undefined} onClose={() => download(undefined)} title={downloaded?.label} centered>
        {downloaded === undefined ? null : <DownloadAnswer of={downloaded} close={() => download(undefined)} />}
      </Modal>
      <Modal opened={removed !== undefined} onClose={() => remove(undefined)} title="Delete this task?" centered>
        {removed === undefined ? null : <DeleteTask of={removed} close={() => remove(undefined)} />}
      </Modal>
    </Page>
  )
}
