/** Actions on a team, as far as the person's role allows them. */
import { ActionIcon, Menu } from "@mantine/core"
import { DotsHorizontalIcon, PaperPlaneIcon, Pencil1Icon, TrashIcon } from "@radix-ui/react-icons"
import type { TeamView } from "../../api/Teams.ts"
import { useMay } from "../data/Queries.ts"

export interface Acts {
  readonly edit: (team: TeamView) => void
  readonly remove: (team: TeamView) => void
  readonly showWebhook: (team: TeamView) => void
}

export const TeamMenu = ({ edit, of, remove, showWebhook }: Acts & { readonly of: TeamView }) => {
  const may = useMay()
  if (!may("teamWebhooks", "get")) return null
  return (
    <Menu position="bottom-end" withinPortal>
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" aria-label={`Actions for ${of.name}`}>
          <DotsHorizontalIcon />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {may("teams", "edit") && (
          <Menu.Item leftSection={<Pencil1Icon />} onClick={() => edit(of)}>
            Edit
          </Menu.Item>
        )}
        <Menu.Item leftSection={<PaperPlaneIcon />} onClick={() => showWebhook(of)}>Webhook</Menu.Item>
        {may("teams", "remove") && (
          <>
            <Menu.Divider />
            <Menu.Item color="red" leftSection={<TrashIcon />} onClick={() => remove(of)}>
              Delete
            </Menu.Item>
          </>
        )}
      </Menu.Dropdown>
    </Menu>
  )
}
