/** Asks before a task is deleted. */
import { Button, Group, Stack, Text } from "@mantine/core"
import { notifications } from "@mantine/notifications"
import type { TaskView } from "../../api/Tasks.ts"
import { useDeleteTask } from "../data/Queries.ts"
import { hasEnded } from "./TaskFacts.tsx"

export const DeleteTask = ({ close, of }: { readonly of: TaskView; readonly close: () => void }) => {
  const remove = useDeleteTask()
  return (
    <Stack>
      <Text style={{ overflowWrap: "anywhere" }}>
        {hasEnded(of) ? "This deletes " : "This stops and deletes "}
        <Text span className="mono">{of.id}</Text>
        {of.batch === null
          ? " with its request and its answer. Its client cannot get them any more."
          : ", also for its client. Its files stay until they expire."}
      </Text>
      <Group justify="flex-end">
        <Button variant="default" onClick={close} data-autofocus>Keep it</Button>
        <Button
          color="red"
          loading={remove.isPending}
          onClick={() =>
            remove.mutate(of.id, {
              onSuccess: () => {
                close()
                notifications.show({ color: "teal", message: "Task deleted" })
              }
            })}
        >
          Delete task
        </Button>
      </Group>
    </Stack>
  )
}
