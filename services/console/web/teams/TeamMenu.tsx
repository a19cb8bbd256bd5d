/** Actions on a team, for people who may change it. */
import { ActionIcon, Menu } from "@mantine/core"
import { DotsHorizontalIcon, Pencil1Icon, TrashIcon } from "@radix-ui/react-icons"
import type { TeamView } from "../../api/Teams.ts"
import { useMay } from "../data/Queries.ts"

export interface Acts {
  readonly edit: (team: TeamView) => void
  readonly remove: (team: TeamView) => void
}

export const TeamMenu = ({ edit, of, remove }: Acts & { readonly of: TeamView }) => {
  const may = useMay()
  if (!may("teams", "edit")) return null
  return (
    <Menu position="bottom-end" withinPortal>
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" aria-label={`Actions for ${of.name}`}>
          <DotsHorizontalIcon />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Item
          leftSection={<Pencil1Icon />}
          onClick={() => edit(of)}
        >
          Edit
        </Menu.Item>
        <Menu.Divider />
        <Menu.Item
          color="red"
          leftSection={<TrashIcon />}
          onClick={() => remove(of)}
        >
          Delete
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  )
}
