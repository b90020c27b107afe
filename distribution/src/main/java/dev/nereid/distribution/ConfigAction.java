package dev.nereid.distribution;

import dev.nereid.distribution.client.RequestException;
import dev.nereid.distribution.client.ServerClient;
import dev.nereid.distribution.flags.FlagValue;
import dev.nereid.distribution.flags.Flags;
import dev.nereid.distribution.report.ConfigText;
import java.util.OptionalLong;

/** Prints the configuration of a model of a running server. Confined to the thread of its command. */
final class ConfigAction implements ClientAction {
    private String model = "";
    private OptionalLong version = OptionalLong.empty();
    private boolean pbtxt;

    @Override
    public void declare(Flags flags) {
        flags.operand("MODEL", value -> model = value);
        flags.add("--version", FlagValue.AMOUNT, v -> version = OptionalLong.of(v))
                .help("The version. Default: the highest one that is ready.")
                .withoutVariable();
        flags.toggle("--pbtxt", () -> pbtxt = true).help("Prints protobuf's text format, as in config.pbtxt.");
        flags.toggle("--json", () -> pbtxt = false)
                .help("Prints JSON, as without this flag. Overrides --pbtxt before it.");
    }

    @Override
    public String run(ServerClient server) throws RequestException, InterruptedException {
        String config = server.config(model, version);
        return (pbtxt ? ConfigText.textFormat(config) : ConfigText.pretty(config))
                .orElseThrow(server::unexpectedResponse);
    }
}
