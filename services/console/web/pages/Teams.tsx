/** Teams: organisations and teams above keys, with their limits and budgets. */
import { Box, Button, Group, Modal, Stack, Text, VisuallyHidden } from "@mantine/core"
import { notifications } from "@mantine/notifications"
import { PersonIcon, PlusIcon } from "@radix-ui/react-icons"
import { useState } from "react"
import type { TeamView } from "../../api/Teams.ts"
import { count } from "../data/Format.ts"
import { useCreateTeam, useDeleteTeam, useEditTeam, useMay, useTeams } from "../data/Queries.ts"
import { Limits, sharedLimitsOf, Spend } from "../keys/KeyFacts.tsx"
import { type Column, DataTable } from "../parts/DataTable.tsx"
import { Empty, Loaded } from "../parts/Feedback.tsx"
import { Page } from "../parts/Page.tsx"
import { changesOf, TeamForm } from "../teams/TeamForm.tsx"
import { type Acts, TeamMenu } from "../teams/TeamMenu.tsx"
import { TeamWebhook } from "../teams/TeamWebhook.tsx"
import { type Branch, branchesOf } from "../teams/Tree.ts"

const Name = ({ depth, team }: Branch) => (
  <Box miw={0} pl={depth * 20}>
    <Text fw={600} lineClamp={2} style={{ overflowWrap: "anywhere" }}>{team.name}</Text>
    <Text size="xs" c="dimmed" className="mono">{team.id}</Text>
    {team.description === "" ? null : <Text size="sm" c="dimmed" lineClamp={2}>{team.description}</Text>}
  </Box>
)

const columnsOf = (acts: Acts): ReadonlyArray<Column<Branch>> => [
  { head: "Name", props: { maw: 320 }, cell: (branch) => <Name {...branch} /> },
  { head: "Limits", props: { maw: 240 }, cell: ({ team }) => <Limits limits={sharedLimitsOf(team)} /> },
  { head: "Keys", isNumeric: true, cell: ({ team }) => count(team.keys) },
  { head: "This month", cell: ({ team }) => <Spend of={team} /> },
  {
    head: <VisuallyHidden>Actions</VisuallyHidden>,
    props: { w: 48 },
    cell: ({ team }) => <TeamMenu of={team} {...acts} />
  }
]

const Create = ({ close }: { readonly close: () => void }) => {
  const create = useCreateTeam()
  return (
    <TeamForm
      submit="Create team"
      isBusy={create.isPending}
      onCancel={close}
      onSubmit={(settings) => create.mutate(settings, { onSuccess: close })}
    />
  )
}

const Edit = ({ close, of }: { readonly of: TeamView; readonly close: () => void }) => {
  const edit = useEditTeam()
  return (
    <TeamForm
      team={of}
      submit="Save"
      isBusy={edit.isPending}
      onCancel={close}
      onSubmit={(settings) => {
        const changes = changesOf(of, settings)
        if (Object.keys(changes).length === 0) return close()
        edit.mutate({ id: of.id, changes }, {
          onSuccess: ({ name }) => {
            close()
            notifications.show({ color: "teal", message: `${name} updated in every process` })
          }
        })
      }}
    />
  )
}

const Remove = ({ close, of }: { readonly of: TeamView; readonly close: () => void }) => {
  const remove = useDeleteTeam()
  return (
    <Stack>
      <Text>
        Only a team without keys and teams can be deleted. Usage of <Text span fw={600}>{of.name}</Text>{" "}
        stays in the usage counters.
      </Text>
      <Group justify="flex-end">
        <Button variant="default" onClick={close} data-autofocus>Cancel</Button>
        <Button color="red" loading={remove.isPending} onClick={() => remove.mutate(of.id, { onSuccess: close })}>
          Delete team
        </Button>
      </Group>
    </Stack>
  )
}

export const Teams = () => {
  const [isCreating, setCreating] = useState(false)
  const [edited, edit] = useState<TeamView>()
  const [removed, remove] = useState<TeamView>()
  const [told, showWebhook] = useState<TeamView>()
  const may = useMay()
  const create = may("teams", "create")
    ? <Button leftSection={<PlusIcon />} onClick={() => setCreating(true)}>Create team</Button>
    : null
  const noTeams = (
    <Empty icon={PersonIcon} title="No teams yet" action={create}>
      Teams share limits and a budget among their keys, and with the teams above them.
    </Empty>
  )
  const [stopCreating, stopEditing, stopRemoving] = [
    () => setCreating(false),
    () => edit(undefined),
    () => remove(undefined)
  ]
  return (
    <Page
      title="Teams"
      description="Organisations and teams share limits, models and a monthly budget among all keys below them."
      actions={create}
    >
      <Box className="card">
        <Loaded query={useTeams()} empty={noTeams}>
          {(teams) => (
            <DataTable
              rows={branchesOf(teams)}
              columns={columnsOf({ edit, remove, showWebhook })}
              keyOf={({ team }) => team.id}
              minWidth={640}
              verticalSpacing="sm"
              horizontalSpacing="md"
              highlightOnHover
              aria-label="Teams"
            />
          )}
        </Loaded>
      </Box>
      <Modal opened={isCreating} onClose={stopCreating} title="Create a team" size="lg">
        {isCreating ? <Create close={stopCreating} /> : null}
      </Modal>
      <Modal opened={edited !== undefined} onClose={stopEditing} title={`Edit ${edited?.name ?? ""}`} size="lg">
        {edited === undefined ? null : <Edit of={edited} close={stopEditing} />}
      </Modal>
      <Modal opened={removed !== undefined} onClose={stopRemoving} title="Delete this team?" centered>
        {removed === undefined ? null : <Remove of={removed} close={stopRemoving} />}
      </Modal>
      <Modal
        opened={told !== undefined}
        onClose={() => showWebhook(undefined)}
        title={`Webhook of ${told?.name ?? ""}`}
        size="lg"
        // an accidental click must not lose a new secret
        closeOnClickOutside={false}
      >
        {told === undefined ? null : <TeamWebhook of={told} />}
      </Modal>
    </Page>
  )
}
