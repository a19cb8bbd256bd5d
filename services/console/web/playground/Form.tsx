/** The form of an operation, generated from its fields. */
import { Base64 } from "effect/encoding"
import { FileInput, Group, Image, NumberInput, Select, SimpleGrid, Switch, Textarea, TextInput } from "@mantine/core"
import { UploadIcon } from "@radix-ui/react-icons"
import type { ChangeEvent } from "react"
import type { Field, Value, Values } from "./Operations.ts"

interface InputProps {
  readonly of: Field
  readonly value: Value
  readonly onChange: (value: Value) => void
}

const asDataUrl = async (file: File): Promise<string> =>
  `data:${file.type};base64,${Base64.encode(new Uint8Array(await file.arrayBuffer()))}`

const files = {
  picture: { placeholder: "Choose an image", accept: "image/png,image/jpeg,image/webp" },
  sound: { placeholder: "Choose a sound", accept: "audio/*" }
}

const Upload = ({ kind, of, onChange, value }: InputProps & { readonly kind: keyof typeof files }) => (
  <Group align="flex-end" wrap="nowrap">
    <FileInput
      {...files[kind]}
      label={of.label}
      description={of.hint}
      leftSection={<UploadIcon />}
      clearable
      flex={1}
      onChange={(file) => {
        if (file === null) {
          return onChange("")
        }
        void asDataUrl(file).then(onChange)
      }}
    />
    {value === "" || kind === "sound"
      ? null
      : <Image src={String(value)} alt="" h={56} w={56} fit="cover" radius="md" />}
  </Group>
)

const Input = (props: InputProps) => {
  const { of, onChange, value } = props
  const { choices = [], kind, label, maximum, minimum, step = 1 } = of
  const described = { label, description: of.hint }
  const text = {
    ...described,
    value: String(value),
    onChange: (event: ChangeEvent<HTMLInputElement | HTMLTextAreaElement>) => onChange(event.currentTarget.value)
  }
  switch (kind) {
    case "text":
      return <TextInput {...text} />
    case "area":
    case "lines":
      return <Textarea {...text} autosize minRows={kind === "lines" ? 3 : 2} maxRows={12} />
    case "number":
      return (
        <NumberInput
          {...described}
          value={typeof value === "boolean" ? "" : value}
          placeholder="Model default"
          step={step}
          {...(minimum === undefined ? {} : { min: minimum })}
          {...(maximum === undefined ? {} : { max: maximum })}
          onChange={onChange}
        />
      )
    case "choice":
      return (
        <Select
          label={label}
          data={[...choices]}
          allowDeselect={false}
          value={String(value)}
          onChange={(choice) => onChange(choice ?? "")}
        />
      )
    case "switch":
      return (
        <Switch
          label={label}
          checked={value === true}
          onChange={({ currentTarget }) => onChange(currentTarget.checked)}
        />
      )
    case "picture":
    case "sound":
      return <Upload {...props} kind={kind} />
  }
}

export const Form = ({ fields, onChange, values }: {
  readonly fields: ReadonlyArray<Field>
  readonly values: Values
  readonly onChange: (name: string, value: Value) => void
}) => {
  const inputOf = (field: Field) => (
    <Input
      key={field.name}
      of={field}
      value={values[field.name] ?? field.initial}
      onChange={(value) => onChange(field.name, value)}
    />
  )
  // two to a row
  const isSmall = ({ kind }: Field) => kind === "number" || kind === "choice"
  const small = fields.filter(isSmall)
  return (
    <>
      {fields.filter((field) => !isSmall(field)).map(inputOf)}
      {small.length > 0 && <SimpleGrid cols={{ base: 1, xs: 2 }}>{small.map(inputOf)}</SimpleGrid>}
    </>
  )
}
