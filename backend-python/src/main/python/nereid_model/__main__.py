"""``python3 -m nereid_model test MODEL_DIRECTORY [request.json]``: loads a model, executes a request, prints the responses.

The request is the JSON of ``POST /v2/models/NAME/infer``, or a list of such requests, which become one batch.
Without a request the model is only loaded. Standard input is read for ``-``.
"""

import argparse
import json
import os
import sys

sys.path.insert(1, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def main() -> int:
    """Runs the command."""
    parser = argparse.ArgumentParser(prog="nereid_model", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    test = commands.add_parser("test", help="load a model, execute a request, print the responses")
    test.add_argument("directory", metavar="MODEL_DIRECTORY")
    test.add_argument("request", nargs="?", metavar="request.json")
    test.add_argument("--version", help="version directory (default: the largest)")
    arguments = parser.parse_args()

    # A test leaves nothing in the repository.
    sys.dont_write_bytecode = True
    from nereid_model import config
    from nereid_model.local import LocalModel, ModelFailed

    versions = [name for name in os.listdir(arguments.directory) if name.isdigit()]
    version = arguments.version or max(versions, key=int, default="1")
    try:
        model = LocalModel(arguments.directory, config.read(arguments.directory), version)
        model.load()
    except config.ConfigError as error:
        sys.stderr.write("config.pbtxt: %s\n" % error)
        return 1
    except ModelFailed as error:
        sys.stderr.write((error.trace or str(error)) + "\n")
        return 1
    try:
        if arguments.request is None:
            return 0
        if arguments.request == "-":
            body = json.load(sys.stdin)
        else:
            with open(arguments.request, encoding="utf-8") as file:
                body = json.load(file)
        requests = body if isinstance(body, list) else [body]
        failed = False
        for request, responses in zip(requests, model.execute(requests)):
            for response in responses:
                if request.get("id"):
                    response = dict({"id": request["id"]}, **response)
                failed |= "error" in response
                print(json.dumps(response, ensure_ascii=False))
        return 1 if failed else 0
    finally:
        model.finalize()


if __name__ == "__main__":
    sys.exit(main())
