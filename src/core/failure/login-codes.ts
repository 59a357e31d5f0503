/** Codes of logins: SASL mechanisms, and where their tokens and keys come from. */
import { spec } from "./code-spec.ts";

export const LOGIN_CODES = {
  "sasl.rejected": spec("environment", false, "The server refused the user or the password."),
  "sasl.server_invalid": spec(
    "environment",
    false,
    "The server's message breaks the rules of the mechanism.",
  ),
  "sasl.server_unproven": spec(
    "environment",
    false,
    "The server could not prove that it knows the password: it may be an impostor.",
  ),
  "sasl.credentials_invalid": spec(
    "config",
    false,
    "The user name, the password or the token holds a character that the mechanism can't carry.",
  ),
  "sasl.token_unreadable": spec(
    "environment",
    false,
    "The token file is not there, may not be read, or is no text of at most 1 MiB.",
  ),
  "oidc.unavailable": spec(
    "environment",
    true,
    "The token endpoint did not answer in time, or answered with an error of its own.",
  ),
  "oidc.refused": spec(
    "environment",
    false,
    "The token endpoint refused the client: check its id, secret and scope.",
  ),
  "oidc.answer_invalid": spec(
    "environment",
    false,
    "What the token endpoint answered is no token: is the address right?",
  ),
  "aws.credentials_missing": spec(
    "environment",
    false,
    "No AWS credentials were found, or their source failed: environment, profile, web identity, container, instance.",
  ),
} as const;
