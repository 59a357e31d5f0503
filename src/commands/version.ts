/** The version, from package.json, fixed into the bundle when it is built. */
import { version } from "../../package.json";

export const VERSION: string = version;
