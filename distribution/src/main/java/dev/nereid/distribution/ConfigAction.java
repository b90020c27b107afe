package dev.nereid.distribution;

import dev.nereid.distribution.client.RequestException;
import dev.nereid.distribution.client.ServerClient;
import dev.nereid.distribution.flags.ClientFlags;
import dev.nereid.distribution.flags.Flag;
import dev.nereid.distribution.flags.FlagValue;
import dev.nereid.distribution.flags.Flags;
import dev.nereid.distribution.process.CommandContext;
import dev.nereid.distribution.report.ConfigText;
import java.util.OptionalLong;

/** Prints the configuration of a model of a running server. Confined to the thread of its command. */
final class ConfigAction implements ClientAction {
    private String model = "";
    private OptionalLong version = OptionalLong.empty();
    private boolean pbtxt;

    static Command command(CommandContext context) {
        return new ClientCommand(
                context,
                "config",
                "MODEL [FLAG]...",
                "Prints the completed configuration of a model of a running server, as JSON.",
                ClientFlags.ofRead(),
                new ConfigAction());
    }

    @Override
    public void declare(Flags flags) {
        flags.operand("MODEL", value -> model = value);
        flags.add(
                Flag.of(
                                "--version",
                                FlagValue.AMOUNT,
                                "The version. Default: the highest one that is ready.",
                                value -> version = OptionalLong.of(value))
                        .withoutVariable(),
                Flag.toggle("--pbtxt", "Prints protobuf's text format, as in config.pbtxt.", () -> pbtxt = true),
                Flag.toggle(
                        "--json",
                        "Prints JSON, as without this flag. Overrides --pbtxt before it.",
                        () -> pbtxt = false));
    }

    @Override
    public String run(ServerClient server) throws RequestException, InterruptedException {
        String config = server.config(model, version);
        return (pbtxt ? ConfigText.textFormat(config) : ConfigText.pretty(config))
                .orElseThrow(server::unexpectedResponse);
    }
}
