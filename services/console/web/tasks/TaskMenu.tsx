/** Actions on a task. */
import { ActionIcon, Menu } from "@mantine/core"
import { notifications } from "@mantine/notifications"
import { DotsHorizontalIcon, DownloadIcon, StopIcon, TrashIcon } from "@radix-ui/react-icons"
import type { TaskView } from "../../api/Tasks.ts"
import { useCancelTask } from "../data/Queries.ts"
import { hasEnded } from "./TaskFacts.tsx"

export interface Acts {
  readonly download: (task: TaskView) => void
  readonly remove: (task: TaskView) => void
}

export const TaskMenu = ({ download, of, remove }: Acts & { readonly of: TaskView }) => {
  const cancel = useCancelTask()
  return (
    <Menu position="bottom-end" withinPortal>
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" loading={cancel.isPending} aria-label={`Actions for ${of.id}`}>
          <DotsHorizontalIcon />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {hasEnded(of)
          ? (
            <Menu.Item
              leftSection={<DownloadIcon />}
              disabled={of.status !== "completed"}
              onClick={() => download(of)}
            >
              Download the answer
            </Menu.Item>
          )
          : (
            <Menu.Item
              leftSection={<StopIcon />}
              onClick={() =>
                cancel.mutate(of.id, {
                  onSuccess: ({ status }) => notifications.show({ color: "teal", message: `The task is ${status}` })
                })}
            >
              Cancel
            </Menu.Item>
          )}
        <Menu.Divider />
        <Menu.Item color="red" leftSection={<TrashIcon />} onClick={() => remove(of)}>Delete</Menu.Item>
      </Menu.Dropdown>
    </Menu>
  )
}
