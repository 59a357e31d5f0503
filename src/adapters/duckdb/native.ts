/**
 * Block codecs and checksums from native code: LZ4, Snappy and Zstd out of libduckdb by their C++ symbol names
 * (pinned to the library version; the same on x64 and arm64), CRC-32C from a Node-API module.
 *
 * Nothing here is taken on trust. Every group of functions is tried against vectors when it is loaded
 * (`native-check.ts`); one that is missing or answers wrongly is replaced by its fallback, and `report` says so.
 */
import { dlopen, FFIType, ptr } from "bun:ffi";
import { crc32c } from "../../core/bytes/crc32.ts";
import type { Codecs } from "../../core/compression/codec.ts";
import { Failure } from "../../core/failure/failure.ts";
import { checkCrc, checkLz4, checkSnappy, checkZstd } from "./native-check.ts";
import { fallbackCodecs } from "./native-fallback.ts";

export type CodecGroup = "crc32c" | "lz4" | "snappy" | "zstd";

export interface NativeReport {
  /** Null: native. Otherwise why the fallback is in use. */
  readonly fallback: Readonly<Record<CodecGroup, string | null>>;
}

export interface NativeCodecs extends Codecs {
  readonly report: NativeReport;
}

const SYMBOLS = {
  lz4Decode: "_ZN10duckdb_lz419LZ4_decompress_safeEPKcPcii",
  lz4DecodeDict: "_ZN10duckdb_lz429LZ4_decompress_safe_usingDictEPKcPciiS1_i",
  lz4Encode: "_ZN10duckdb_lz420LZ4_compress_defaultEPKcPcii",
  snappyDecode: "_ZN13duckdb_snappy13RawUncompressEPKcmPc",
  snappyLength: "_ZN13duckdb_snappy21GetUncompressedLengthEPKcmPm",
  snappyEncode: "_ZN13duckdb_snappy11RawCompressEPKcmPcPm",
  zstdCreateCCtx: "_ZN11duckdb_zstd15ZSTD_createCCtxEv",
  zstdCompress: "_ZN11duckdb_zstd14ZSTD_compress2EPNS_11ZSTD_CCtx_sEPvmPKvm",
  zstdSet: "_ZN11duckdb_zstd22ZSTD_CCtx_setParameterEPNS_11ZSTD_CCtx_sENS_15ZSTD_cParameterEi",
  zstdBound: "_ZN11duckdb_zstd18ZSTD_compressBoundEm",
  zstdCreateDCtx: "_ZN11duckdb_zstd15ZSTD_createDCtxEv",
  zstdDecompress: "_ZN11duckdb_zstd19ZSTD_decompressDCtxEPNS_11ZSTD_DCtx_sEPvmPKvm",
  zstdContentSize: "_ZN11duckdb_zstd24ZSTD_getFrameContentSizeEPKvm",
  zstdIsError: "_ZN11duckdb_zstd12ZSTD_isErrorEm",
} as const;

const P = FFIType.ptr;
const I32 = FFIType.i32;
/** size_t as a number: every size here is below 2^31. */
const SIZE = FFIType.u64_fast;
/** A size_t that holds a negated error number in its highest values. */
const SIGNED = FFIType.i64_fast;

type Bytes = Uint8Array;

/** Stands in for arrays without bytes, which have no address. */
const NO_BYTES = new Uint8Array(8);

/** Address of bytes[at]. The array is on the caller's stack for the length of the call, so it cannot move or go. */
function address(bytes: Bytes, at: number): number {
  return (ptr(bytes.length === 0 ? NO_BYTES : bytes) as number) + at;
}

interface Lz4 {
  readonly lz4Block: Codecs["lz4Block"];
  readonly lz4Compress: Codecs["lz4Compress"];
}

function loadLz4(path: string): Lz4 {
  const lib = dlopen(path, {
    [SYMBOLS.lz4Decode]: { args: [P, P, I32, I32], returns: I32 },
    [SYMBOLS.lz4DecodeDict]: { args: [P, P, I32, I32, P, I32], returns: I32 },
    [SYMBOLS.lz4Encode]: { args: [P, P, I32, I32], returns: I32 },
  }).symbols as unknown as Record<string, (...args: number[]) => number>;
  const decode = lib[SYMBOLS.lz4Decode]!;
  const decodeDict = lib[SYMBOLS.lz4DecodeDict]!;
  const encode = lib[SYMBOLS.lz4Encode]!;
  return {
    lz4Block(src, start, end, dst, at, limit, window) {
      if (end <= start) return -1;
      const s = address(src, start);
      const d = address(dst, at);
      const n =
        window >= at
          ? decode(s, d, end - start, limit - at)
          : decodeDict(s, d, end - start, limit - at, d - (at - window), at - window);
      return n < 0 ? -1 : n;
    },
    lz4Compress(src, dst) {
      const n = encode(address(src, 0), address(dst, 0), src.length, dst.length);
      if (n <= 0 && src.length > 0) throw new Failure("internal.bug", "lz4: the destination is too small");
      return n;
    },
  };
}

interface Snappy {
  readonly snappyBlock: Codecs["snappyBlock"];
  readonly snappyCompress: Codecs["snappyCompress"];
}

function loadSnappy(path: string): Snappy {
  const lib = dlopen(path, {
    [SYMBOLS.snappyDecode]: { args: [P, SIZE, P], returns: FFIType.bool },
    [SYMBOLS.snappyLength]: { args: [P, SIZE, P], returns: FFIType.bool },
    [SYMBOLS.snappyEncode]: { args: [P, SIZE, P, P], returns: FFIType.void },
  }).symbols as unknown as Record<string, (...args: number[]) => number | boolean>;
  const decode = lib[SYMBOLS.snappyDecode]!;
  const length = lib[SYMBOLS.snappyLength]!;
  const encode = lib[SYMBOLS.snappyEncode]!;
  const size = new Float64Array(1);
  const sizeBits = new BigUint64Array(size.buffer);
  return {
    snappyBlock(src, start, end, dst, at, limit) {
      const s = address(src, start);
      // RawUncompress writes as many bytes as the block declares and is not told where the room ends.
      if (!length(s, end - start, ptr(size) as number)) return -1;
      const n = Number(sizeBits[0]!);
      if (n > limit - at) return -1;
      return decode(s, end - start, address(dst, at)) ? n : -1;
    },
    snappyCompress(src, dst) {
      encode(address(src, 0), src.length, address(dst, 0), ptr(size) as number);
      return Number(sizeBits[0]!);
    },
  };
}

interface Zstd {
  readonly zstd: Codecs["zstd"];
  readonly zstdCompress: Codecs["zstdCompress"];
}

/** ZSTD_error_dstSize_tooSmall of zstd_errors.h, negated. */
const TOO_SMALL = -70;
/** ZSTD_CONTENTSIZE_UNKNOWN and _ERROR are -1 and -2. A hint above this ratio is not believed for allocation. */
const BELIEVED_RATIO = 64;
const FIRST_GUESS_BYTES = 1 << 17;

/** ZSTD_cParameter of zstd.h. */
const LEVEL = 100;
const HASH_LOG = 102;
/**
 * 2^13 entries of 4 bytes fit a core's first cache; level 1 would take twice that for a page. Measured on pages of
 * 1 MiB: JSON events 5 % less CPU at the same size, source code 5 % less for 2.5 % more bytes.
 */
const LEVEL_1_HASH_LOG = 13;

function loadZstd(path: string): Zstd {
  const lib = dlopen(path, {
    [SYMBOLS.zstdCreateCCtx]: { args: [], returns: P },
    [SYMBOLS.zstdCompress]: { args: [P, P, SIZE, P, SIZE], returns: SIGNED },
    [SYMBOLS.zstdSet]: { args: [P, I32, I32], returns: SIGNED },
    [SYMBOLS.zstdCreateDCtx]: { args: [], returns: P },
    [SYMBOLS.zstdDecompress]: { args: [P, P, SIZE, P, SIZE], returns: SIGNED },
    [SYMBOLS.zstdContentSize]: { args: [P, SIZE], returns: SIGNED },
    [SYMBOLS.zstdBound]: { args: [SIZE], returns: SIGNED },
    [SYMBOLS.zstdIsError]: { args: [SIGNED], returns: I32 },
  }).symbols as unknown as Record<string, (...args: number[]) => number | bigint>;
  const compress = lib[SYMBOLS.zstdCompress]!;
  const decompress = lib[SYMBOLS.zstdDecompress]!;
  const contentSize = lib[SYMBOLS.zstdContentSize]!;
  const cctx = Number(lib[SYMBOLS.zstdCreateCCtx]!());
  const dctx = Number(lib[SYMBOLS.zstdCreateDCtx]!());
  if (cctx === 0 || dctx === 0) throw new Failure("internal.bug", "zstd: no memory for a context");
  let current = Number.NaN;
  const useLevel = (level: number) => {
    if (level === current) return;
    const set = lib[SYMBOLS.zstdSet]!;
    // 0: what the level says.
    const done = [set(cctx, LEVEL, level), set(cctx, HASH_LOG, level === 1 ? LEVEL_1_HASH_LOG : 0)];
    if (done.some((code) => Number(code) < 0)) throw new Failure("internal.bug", `zstd: no level ${level}`);
    current = level;
  };
  return {
    zstd(src, start, end, out) {
      const n = end - start;
      if (n === 0) throw corruptZstd(start, 0);
      const s = address(src, start);
      const declared = Number(contentSize(s, n));
      if (declared > out.allowance) throw out.tooLarge();
      const believed = declared > 0 && declared <= n * BELIEVED_RATIO ? declared : FIRST_GUESS_BYTES;
      if (out.room < believed) out.reserve(Math.min(believed, out.allowance));
      for (;;) {
        const room = out.room;
        const size = Number(decompress(dctx, address(out.bytes, out.end), room, s, n));
        if (size >= 0) {
          out.end += size;
          return;
        }
        if (size !== TOO_SMALL) throw corruptZstd(start, size);
        if (room >= out.allowance) throw out.tooLarge();
        out.reserve(Math.min(room * 4 + FIRST_GUESS_BYTES, out.allowance));
      }
    },
    zstdCompress(src, dst, level) {
      useLevel(level);
      const n = Number(compress(cctx, address(dst, 0), dst.length, address(src, 0), src.length));
      if (n < 0) throw new Failure("internal.bug", `zstd: compression failed with error ${-n}`);
      return n;
    },
  };
}

function corruptZstd(start: number, error: number): Failure {
  return new Failure("compression.corrupt", `zstd: frame at ${start} cannot be read (error ${-error})`);
}

interface Crc {
  readonly crc32c: Codecs["crc32c"];
}

/** Below this the call (a view, and Node-API) costs more than the plain loop. Measured; they meet near 500 bytes. */
const NATIVE_CRC_FROM_BYTES = 512;

function loadCrc(): Crc {
  // A literal require inside of a function: the bundler embeds the module, and nothing is loaded before it is needed.
  const native = require("@node-rs/crc32") as { crc32c(bytes: Uint8Array): number };
  const run = native.crc32c;
  return {
    crc32c(bytes, start, end) {
      if (end - start < NATIVE_CRC_FROM_BYTES) return crc32c(bytes, start, end);
      return run(bytes.subarray(start, end));
    },
  };
}

/** Loads and checks one group; the reason if it cannot be used. */
function attempt<T>(
  load: () => T,
  check: (loaded: T) => string | null,
): { loaded: T | null; why: string | null } {
  try {
    const loaded = load();
    const why = check(loaded);
    return why === null ? { loaded, why } : { loaded: null, why };
  } catch (e) {
    return { loaded: null, why: e instanceof Error ? e.message : String(e) };
  }
}

/**
 * The codecs, native where that works. `libPath` is the file of libduckdb; null uses the fallbacks for its part.
 * Never throws: what is not native is named in `report`. Contexts are reused, so one value belongs to one thread.
 */
export function loadNative(libPath: string | null): NativeCodecs {
  const path = (): string => {
    if (libPath === null) throw new Failure("internal.bug", "no library was given");
    return libPath;
  };
  const lz4 = attempt(() => loadLz4(path()), checkLz4);
  const snappy = attempt(() => loadSnappy(path()), checkSnappy);
  const zstd = attempt(() => loadZstd(path()), checkZstd);
  const crc = attempt(loadCrc, checkCrc);
  return {
    ...fallbackCodecs,
    ...lz4.loaded,
    ...snappy.loaded,
    ...zstd.loaded,
    ...crc.loaded,
    report: { fallback: { crc32c: crc.why, lz4: lz4.why, snappy: snappy.why, zstd: zstd.why } },
  };
}

/**
 * The same for who may never meet a compressed byte: the library is loaded and tried when one of its codecs is first
 * wanted, which takes some 40 ms; the checksum is there at once.
 */
export function nativeOnDemand(libPath: string | null): Codecs {
  const crc = attempt(loadCrc, checkCrc).loaded ?? fallbackCodecs;
  let loaded: Codecs | null = null;
  const native = (): Codecs => {
    loaded ??= loadNative(libPath);
    return loaded;
  };
  return {
    ...fallbackCodecs,
    crc32c: crc.crc32c,
    lz4Block: (...block) => native().lz4Block(...block),
    lz4Compress: (...block) => native().lz4Compress(...block),
    snappyBlock: (...block) => native().snappyBlock(...block),
    snappyCompress: (...block) => native().snappyCompress(...block),
    zstd: (...frames) => native().zstd(...frames),
    zstdCompress: (...frame) => native().zstdCompress(...frame),
  };
}
