/** API Keys: create, limit, disable and revoke them. */
import { Box, Button, Group, Modal, Stack, Tabs, Text, TextInput, VisuallyHidden } from "@mantine/core"
import { useMediaQuery } from "@mantine/hooks"
import { notifications } from "@mantine/notifications"
import { LockClosedIcon, MagnifyingGlassIcon, PlusIcon } from "@radix-ui/react-icons"
import { useState } from "react"
import type { KeyView } from "../../api/Keys.ts"
import { ago, counted, moment } from "../data/Format.ts"
import { KeyChanges } from "../keys/KeyChanges.tsx"
import { KeyLastUse, KeyLimits, KeyName, KeyState, Spend } from "../keys/KeyFacts.tsx"
import { changesOf, KeyForm } from "../keys/KeyForm.tsx"
import { KeyMenu } from "../keys/KeyMenu.tsx"
import { NewKey } from "../keys/NewKey.tsx"
import { type Column, DataTable } from "../parts/DataTable.tsx"
import { Empty, Loaded } from "../parts/Feedback.tsx"
import { Page } from "../parts/Page.tsx"
import { useEditKey, useKeys, useMay, useRevokeKey } from "../data/Queries.ts"

interface Acts {
  readonly edit: (key: KeyView) => void
  readonly revoke: (key: KeyView) => void
}

const menu = (key: KeyView, { edit, revoke }: Acts) => (
  <KeyMenu
    of={key}
    onEdit={() => edit(key)}
    onRevoke={() => revoke(key)}
  />
)

const columnsOf = (acts: Acts): ReadonlyArray<Column<KeyView>> => [
  { head: "Name", props: { maw: 260 }, cell: (key) => <KeyName of={key} /> },
  { head: "State", cell: (key) => <KeyState of={key} /> },
  { head: "Limits", props: { maw: 240 }, cell: (key) => <KeyLimits of={key} /> },
  { head: "This month", cell: (key) => <Spend of={key} /> },
  { head: "Last used", cell: (key) => <KeyLastUse of={key} /> },
  { head: "Created", cell: ({ createdAt }) => <Text size="sm" title={moment(createdAt)}>{ago(createdAt)}</Text> },
  { head: <VisuallyHidden>Actions</VisuallyHidden>, props: { w: 48 }, cell: (key) => menu(key, acts) }
]

const Cards = ({ acts, keys }: { readonly keys: ReadonlyArray<KeyView>; readonly acts: Acts }) => (
  <Stack component="ul" gap={0} p={0} m={0} aria-label="API keys">
    {keys.map((key) => (
      <Stack component="li" className="list-card" key={key.id} gap="xs" p="md">
        <Group justify="space-between" wrap="nowrap" align="flex-start">
          <KeyName of={key} />
          <Group gap={4} wrap="nowrap" flex="none">
            <KeyState of={key} />
            {menu(key, acts)}
          </Group>
        </Group>
        <KeyLimits of={key} />
        <Group justify="space-between" align="flex-end">
          <Spend of={key} />
          <Group gap={4}>
            <Text size="sm" c="dimmed">Last used</Text>
            <KeyLastUse of={key} />
          </Group>
        </Group>
      </Stack>
    ))}
  </Stack>
)

const Edit = ({ close, of }: { readonly of: KeyView; readonly close: () => void }) => {
  const edit = useEditKey()
  return (
    <KeyForm
      settings={of}
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

const Revoke = ({ close, of }: { readonly of: KeyView; readonly close: () => void }) => {
  const revoke = useRevokeKey()
  return (
    <Stack>
      <Text>
        The gateway will reject every further request with{" "}
        <Text span fw={600}>{of.name}</Text>. This cannot be undone. To block the key temporarily, disable it instead.
      </Text>
      <Group justify="flex-end">
        <Button variant="default" onClick={close} data-autofocus>Cancel</Button>
        <Button
          color="red"
          loading={revoke.isPending}
          onClick={() =>
            revoke.mutate(of.id, {
              onSuccess: () => {
                close()
                notifications.show({ color: "teal", message: `${of.name} revoked` })
              }
            })}
        >
          Revoke key
        </Button>
      </Group>
    </Stack>
  )
}

export const Keys = () => {
  const isNarrow = useMediaQuery("(max-width: 75em)", undefined, { getInitialValueInEffect: false })
  const [search, setSearch] = useState("")
  const [isCreating, setCreating] = useState(false)
  const [edited, edit] = useState<KeyView>()
  const [revoked, revoke] = useState<KeyView>()
  const may = useMay()
  const create = may("keys", "create")
    ? <Button leftSection={<PlusIcon />} onClick={() => setCreating(true)}>Create key</Button>
    : null
  const noKeys = <Empty icon={LockClosedIcon} title="No keys yet" action={create}>A new key works immediately.</Empty>
  const acts = { edit, revoke }
  return (
    <Page
      title="API Keys"
      description="One key per team or application. Clients send it to the gateway as a bearer token."
      actions={create}
    >
      <Box className="card">
        <Tabs defaultValue="keys" keepMounted={false}>
          <Tabs.List px="sm" pt={4}>
            <Tabs.Tab value="keys">Keys</Tabs.Tab>
            {may("keys", "changes") ? <Tabs.Tab value="changes">Audit log</Tabs.Tab> : null}
          </Tabs.List>
          <Tabs.Panel value="keys">
            <Loaded query={useKeys()} empty={noKeys}>
              {(keys) => {
                const found = keys.filter(({ id, name }) =>
                  `${name} ${id}`.toLowerCase().includes(search.trim().toLowerCase())
                )
                return (
                  <>
                    <Group p="md" justify="space-between" gap="sm">
                      <TextInput
                        aria-label="Search keys"
                        placeholder="Search by name or id"
                        leftSection={<MagnifyingGlassIcon />}
                        value={search}
                        onChange={({ currentTarget }) => setSearch(currentTarget.value)}
                        w={{ base: "100%", xs: 280 }}
                      />
                      <Text size="sm" c="dimmed" role="status">{counted(found.length, "key")}</Text>
                    </Group>
                    {isNarrow ? <Cards keys={found} acts={acts} /> : (
                      <DataTable
                        rows={found}
                        columns={columnsOf(acts)}
                        keyOf={({ id }) => id}
                        verticalSpacing="sm"
                        horizontalSpacing="md"
                        highlightOnHover
                        aria-label="API keys"
                      />
                    )}
                  </>
                )
              }}
            </Loaded>
          </Tabs.Panel>
          <Tabs.Panel value="changes">
            <KeyChanges />
          </Tabs.Panel>
        </Tabs>
      </Box>
      <NewKey isOpen={isCreating} onClose={() => setCreating(false)} />
      <Modal
        opened={edited !== undefined}
        onClose={() => edit(undefined)}
        title={`Edit ${edited?.name ?? ""}`}
        size="lg"
      >
        {edited === undefined ? null : <Edit of={edited} close={() => edit(undefined)} />}
      </Modal>
      <Modal opened={revoked !== undefined} onClose={() => revoke(undefined)} title="Revoke this key?" centered>
        {revoked === undefined ? null : <Revoke of={revoked} close={() => revoke(undefined)} />}
      </Modal>
    </Page>
  )
}
