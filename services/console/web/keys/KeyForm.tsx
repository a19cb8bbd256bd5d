/** Form for the settings of a new or existing key. */
import { Accordion, Button, Group, Select, Stack, Text, TextInput } from "@mantine/core"
import { useForm } from "@mantine/form"
import { DateTime, Equal, Option, Schema, Struct } from "effect"
import { defaults, type KeyChanges, KeySettings } from "../../../../shared/keys/KeySettings.ts"
import { useSession, useTeams } from "../data/Queries.ts"
import { problemOfModels } from "../parts/LimitFields.tsx"
import { KeyLimitFields, keyLimitsOf, type KeyLimitValues, keyLimitValuesOf } from "./KeyLimits.tsx"

/** Values of the inputs. */
interface Values extends KeyLimitValues {
  readonly name: string
  /** `null` for none. */
  readonly team: string | null
  readonly expiry: string
  readonly expiryDate: string
}

const decodeName = Schema.decodeUnknownOption(KeySettings.fields.name)

const inDays = [7, 30, 90, 365]

const valuesOf = (settings: KeySettings | undefined): Values => ({
  name: settings?.name ?? "",
  team: settings?.team ?? null,
  ...(settings === undefined || settings.expiresAt === null
    ? { expiry: "never", expiryDate: "" }
    : { expiry: "date", expiryDate: DateTime.formatIsoDateUtc(settings.expiresAt) }),
  ...keyLimitValuesOf(settings ?? {})
})

const expiresAt = ({ expiry, expiryDate }: Values): DateTime.Utc | null => {
  if (expiry === "never") return null
  if (expiry === "date") return DateTime.makeUnsafe(`${expiryDate}T00:00:00Z`)
  return DateTime.add(DateTime.nowUnsafe(), { days: Number(expiry) })
}

const settingsOf = (values: Values, disabled: boolean): KeySettings => ({
  name: values.name.trim(),
  expiresAt: expiresAt(values),
  disabled,
  ...keyLimitsOf(values),
  team: values.team
})

/**
 * Only the settings changed in the form. Another administrator may have changed the others meanwhile, and some values, such
 * as the hour of an expiry, do not fit into the form.
 */
export const changesOf = (before: KeySettings, after: KeySettings): KeyChanges => {
  const shown = settingsOf(valuesOf(before), before.disabled)
  return Struct.pick(after, Struct.keys(shown).filter((setting) => !Equal.equals(after[setting], shown[setting])))
}

export const KeyForm = ({ isBusy, onCancel, onSubmit, settings, submit }: {
  readonly settings?: KeySettings
  readonly submit: string
  readonly isBusy: boolean
  readonly onSubmit: (settings: KeySettings) => void
  readonly onCancel: () => void
}) => {
  const teams = useTeams().data ?? []
  const isMember = useSession().data?.role === "member"
  const form = useForm<Values>({
    initialValues: valuesOf(settings),
    validate: {
      team: (team) => isMember && team === null ? "Choose one of your teams" : null,
      name: (name) => Option.isNone(decodeName(name.trim())) ? "Enter a name of up to 200 characters" : null,
      expiryDate: (date, { expiry }) => expiry === "date" && date === "" ? "Choose a date" : null,
      allowedModels: problemOfModels
    }
  })
  /** A new key begins with the defaults of its team. */
  const chooseTeam = (id: string | null) => {
    const team = teams.find((team) => team.id === id)
    if (settings !== undefined || team === undefined) return form.setFieldValue("team", id)
    const { name } = form.getValues()
    const suggested = valuesOf({ ...defaults, ...team.keyDefaults, name, team: id })
    const { expiry, expiryDate } = form.getValues()
    form.setValues({ ...suggested, expiry, expiryDate })
  }
  return (
    <form onSubmit={form.onSubmit((values) => onSubmit(settingsOf(values, settings?.disabled ?? false)))}>
      <Stack gap="md">
        <TextInput
          label="Name"
          placeholder="search team, production"
          required
          data-autofocus
          {...form.getInputProps("name")}
        />
        {teams.length === 0 && form.values.team === null ? null : (
          <Select
            label="Team"
            description="Its limits, budget and models apply, too, and those of the teams above it"
            placeholder={isMember ? "One of your teams" : "No team"}
            required={isMember}
            clearable={!isMember}
            searchable
            data={teams.map(({ id, name }) => ({ value: id, label: name }))}
            {...form.getInputProps("team")}
            onChange={chooseTeam}
          />
        )}
        <Group grow align="flex-start">
          <Select
            label="Expires"
            allowDeselect={false}
            data={[
              { value: "never", label: "Never" },
              ...inDays.map((days) => ({ value: String(days), label: days === 365 ? "In a year" : `In ${days} days` })),
              { value: "date", label: "On a date" }
            ]}
            {...form.getInputProps("expiry")}
          />
          {form.values.expiry === "date" && (
            <TextInput type="date" label="Date (UTC)" {...form.getInputProps("expiryDate")} />
          )}
        </Group>
        <Accordion variant="separated" defaultValue={settings === undefined ? null : "limits"}>
          <Accordion.Item value="limits">
            <Accordion.Control>
              <Text fw={600} size="sm">Limits and models</Text>
              <Text size="xs" c="dimmed">Enforced across all gateway processes</Text>
            </Accordion.Control>
            <Accordion.Panel>
              <KeyLimitFields inputPropsOf={form.getInputProps} />
            </Accordion.Panel>
          </Accordion.Item>
        </Accordion>
        <Group justify="flex-end">
          <Button variant="default" onClick={onCancel}>Cancel</Button>
          <Button type="submit" loading={isBusy}>{submit}</Button>
        </Group>
      </Stack>
    </form>
  )
}
