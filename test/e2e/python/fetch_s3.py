"""Copies what lies under a prefix of a bucket into a folder, by pyarrow's own S3 client. Arguments: endpoint, access key,
secret key, bucket and prefix, folder. Prints JSON {files, bytes}."""

import json
import os
import sys

from pyarrow import fs

endpoint, access, secret, place, folder = sys.argv[1:6]
scheme, address = endpoint.split("://")
store = fs.S3FileSystem(access_key=access, secret_key=secret, endpoint_override=address, scheme=scheme, region="us-east-1")
files = total = 0
for info in store.get_file_info(fs.FileSelector(place, recursive=True)):
    if info.type != fs.FileType.File or not info.path.endswith(".parquet"):
        continue
    path = os.path.join(folder, os.path.relpath(info.path, place))
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with store.open_input_stream(info.path) as source, open(path, "wb") as target:
        data = source.read()
        target.write(data)
    files += 1
    total += len(data)
print(json.dumps({"files": files, "bytes": total}))
