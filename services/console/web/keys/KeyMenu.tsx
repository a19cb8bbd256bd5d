/** Actions on a key, for people who may change it. */
import { ActionIcon, Menu } from "@mantine/core"
import { DotsHorizontalIcon, PauseIcon, Pencil1Icon, PlayIcon, TrashIcon } from "@radix-ui/react-icons"
import type { KeyView } from "../../api/Keys.ts"
import { useEditKey, useMay } from "../data/Queries.ts"

export const KeyMenu = ({ of, onEdit, onRevoke }: {
  readonly of: KeyView
  readonly onEdit: () => void
  readonly onRevoke: () => void
}) => {
  const edit = useEditKey()
  const may = useMay()
  const { disabled, id, name } = of
  if (!may("keys", "edit")) return null
  return (
    <Menu position="bottom-end" withinPortal>
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" loading={edit.isPending} aria-label={`Actions for ${name}`}>
          <DotsHorizontalIcon />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Item leftSection={<Pencil1Icon />} onClick={onEdit}>Edit limits</Menu.Item>
        <Menu.Item
          leftSection={disabled ? <PlayIcon /> : <PauseIcon />}
          onClick={() => edit.mutate({ id, changes: { disabled: !disabled } })}
        >
          {disabled ? "Enable" : "Disable"}
        </Menu.Item>
        <Menu.Divider />
        <Menu.Item color="red" leftSection={<TrashIcon />} onClick={onRevoke}>Revoke</Menu.Item>
      </Menu.Dropdown>
    </Menu>
  )
}
