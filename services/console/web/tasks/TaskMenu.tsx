/** Actions on a task. */
import { ActionIcon, Menu } from "@mantine/core"
import { notifications } from "@mantine/notifications"
import { DotsHorizontalIcon, DownloadIcon, StopIcon, TrashIcon } from "@radix-ui/react-icons"
import type { TaskView } from "../../api/Tasks.ts"
import { useCancelTask, useMay } from "../data/Queries.ts"
import { type Content, contentsOf, hasEnded } from "./TaskFacts.tsx"

export interface Acts {
  readonly download: (content: Content) => void
  readonly remove: (task: TaskView) => void
}

export const TaskMenu = ({ download, of, remove }: Acts & { readonly of: TaskView }) => {
  const cancel = useCancelTask()
  const may = useMay()
  const isCancellable = !hasEnded(of) && may("tasks", "cancel")
  const isDeletable = (hasEnded(of) || of.batch === null) && may("tasks", "remove")
  return (
    <Menu position="bottom-end" withinPortal>
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" loading={cancel.isPending} aria-label={`Actions for ${of.id}`}>
          <DotsHorizontalIcon />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {contentsOf(of).map((content) => (
          <Menu.Item
            key={content.path}
            leftSection={<DownloadIcon />}
            onClick={() => download(content)}
          >
            {content.label}
          </Menu.Item>
        ))}
        {isCancellable && (
          <Menu.Item
            leftSection={<StopIcon />}
            disabled={of.batch?.status === "cancelling"}
            onClick={() =>
              cancel.mutate(of.id, {
                onSuccess: ({ batch, status }) => {
                  const message = batch === null ? `The task is ${status}` : `The batch is ${batch.status}`
                  notifications.show({ color: "teal", message })
                }
              })}
          >
            Cancel
          </Menu.Item>
        )}
        {isDeletable && (
          <Menu.Item color="red" leftSection={<TrashIcon />} onClick={() => remove(of)}>
            Delete
          </Menu.Item>
        )}
      </Menu.Dropdown>
    </Menu>
  )
}
