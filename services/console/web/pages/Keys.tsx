/** API Keys: made here, shown once, limited, switched off and ended. */
import { Box, Button, Group, Modal, Stack, Table, Tabs, Text, TextInput } from "@mantine/core"
import { useMediaQuery } from "@mantine/hooks"
import { notifications } from "@mantine/notifications"
import { LockClosedIcon, MagnifyingGlassIcon, PlusIcon } from "@radix-ui/react-icons"
import { useState } from "react"
import type { KeyView } from "../../api/Keys.ts"
import { ago, counted, moment } from "../data/Format.ts"
import { KeyChanges } from "../keys/KeyChanges.tsx"
import { KeyLastUse, KeyLimits, KeyName, KeySpend, KeyState } from "../keys/KeyFacts.tsx"
import { changesOf, KeyForm } from "../keys/KeyForm.tsx"
import { KeyMenu } from "../keys/KeyMenu.tsx"
import { NewKey } from "../keys/NewKey.tsx"
import { Empty, Loaded } from "../parts/Feedback.tsx"
import { Page } from "../parts/Page.tsx"
import { useEditKey, useKeys, useRevokeKey } from "../data/Queries.ts"

interface Acts {
  readonly edit: (key: KeyView) => void
  readonly revoke: (key: KeyView) => void
}

const menu = (key: KeyView, acts: Acts) => (
  <KeyMenu
    of={key}
    onEdit={() => acts.edit(key)}
    onRevoke={() => acts.revoke(key)}
  />
)

const Rows = ({ acts, keys }: { readonly keys: ReadonlyArray<KeyView>; readonly acts: Acts }) => (
  <Table verticalSpacing="sm" horizontalSpacing="md" highlightOnHover aria-label="API keys">
    <Table.Thead>
      <Table.Tr>
        <Table.Th>Name</Table.Th>
        <Table.Th>State</Table.Th>
        <Table.Th>Limits</Table.Th>
        <Table.Th>This month</Table.Th>
        <Table.Th>Last used</Table.Th>
        <Table.Th>Created</Table.Th>
        <Table.Th aria-label="Actions" />
      </Table.Tr>
    </Table.Thead>
    <Table.Tbody>
      {keys.map((key) => (
        <Table.Tr key={key.id}>
          <Table.Td maw={260}>
            <KeyName of={key} />
          </Table.Td>
          <Table.Td>
            <KeyState of={key} />
          </Table.Td>
          <Table.Td maw={240}>
            <KeyLimits of={key} />
          </Table.Td>
          <Table.Td>
            <KeySpend of={key} />
          </Table.Td>
          <Table.Td>
            <KeyLastUse of={key} />
          </Table.Td>
          <Table.Td>
            <Text size="sm" title={moment(key.createdAt)}>{ago(key.createdAt)}</Text>
          </Table.Td>
          <Table.Td w={48}>{menu(key, acts)}</Table.Td>
        </Table.Tr>
      ))}
    </Table.Tbody>
  </Table>
)

const Cards = ({ acts, keys }: { readonly keys: ReadonlyArray<KeyView>; readonly acts: Acts }) => (
  <Stack component="ul" gap={0} p={0} m={0} aria-label="API keys">
    {keys.map((key) => (
      <Stack
        component="li"
        key={key.id}
        gap="xs"
        p="md"
        style={{ borderTop: "1px solid var(--console-line)", listStyle: "none" }}
      >
        <Group justify="space-between" wrap="nowrap" align="flex-start">
          <KeyName of={key} />
          <Group gap={4} wrap="nowrap" flex="none">
            <KeyState of={key} />
            {menu(key, acts)}
          </Group>
        </Group>
        <KeyLimits of={key} />
        <Group justify="space-between" align="flex-end">
          <KeySpend of={key} />
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
            notifications.show({ color: "teal", message: `${name} is changed, for every process at once` })
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
        Requests with <Text span fw={600}>{of.name}</Text>{" "}
        are refused from the next one on, and the key cannot be brought back. To stop it for a while, disable it.
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
                notifications.show({ color: "teal", message: `${of.name} is revoked` })
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
  const query = useKeys()
  const isNarrow = useMediaQuery("(max-width: 75em)", undefined, { getInitialValueInEffect: false })
  const [search, setSearch] = useState("")
  const [isCreating, setCreating] = useState(false)
  const [edited, edit] = useState<KeyView>()
  const [revoked, revoke] = useState<KeyView>()
  const create = <Button leftSection={<PlusIcon />} onClick={() => setCreating(true)}>Create key</Button>
  const acts = { edit, revoke }
  return (
    <Page
      title="API Keys"
      description="One key for each team or application. Clients send it as a bearer token to the gateway."
      actions={create}
    >
      <Box className="card">
        <Tabs defaultValue="keys" keepMounted={false}>
          <Tabs.List px="sm" pt={4}>
            <Tabs.Tab value="keys">Keys</Tabs.Tab>
            <Tabs.Tab value="changes">Log of changes</Tabs.Tab>
          </Tabs.List>
          <Tabs.Panel value="keys">
            <Loaded query={query}>
              {(keys) => {
                if (keys.length === 0) {
                  return (
                    <Empty icon={<LockClosedIcon width={22} height={22} />} title="No keys yet" action={create}>
                      Create the first one: it works the moment it is made.
                    </Empty>
                  )
                }
                const found = keys.filter(({ id, name }) =>
                  `${name} ${id}`.toLowerCase().includes(search.trim().toLowerCase())
                )
                return (
                  <>
                    <Group p="md" justify="space-between" gap="sm">
                      <TextInput
                        aria-label="Find a key"
                        placeholder="Find by name or id"
                        leftSection={<MagnifyingGlassIcon />}
                        value={search}
                        onChange={({ currentTarget }) => setSearch(currentTarget.value)}
                        w={{ base: "100%", xs: 280 }}
                      />
                      <Text size="sm" c="dimmed" role="status">{counted(found.length, "key")}</Text>
                    </Group>
                    {isNarrow ? <Cards keys={found} acts={acts} /> : <Rows keys={found} acts={acts} />}
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
        closeButtonProps={{ "aria-label": "Close" }}
      >
        {edited === undefined ? null : <Edit of={edited} close={() => edit(undefined)} />}
      </Modal>
      <Modal
        opened={revoked !== undefined}
        onClose={() => revoke(undefined)}
        title="Revoke this key?"
        centered
        closeButtonProps={{ "aria-label": "Close" }}
      >
        {revoked === undefined ? null : <Revoke of={revoked} close={() => revoke(undefined)} />}
      </Modal>
    </Page>
  )
}
