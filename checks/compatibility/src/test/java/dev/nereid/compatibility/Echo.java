package dev.nereid.compatibility;

import dev.nereid.distribution.testing.InstalledServer;
import dev.nereid.distribution.testing.Repository;
import java.io.IOException;
import java.nio.file.Path;

/**
 * The models of the clients' requests, most of which return their inputs. Stateless.
 *
 * <p>For each data type {@code echo_<type>}, of one dimension and without batches; {@code echo_batch}, FP32 with
 * batches; {@code echo_one_string}, which takes a single string; {@code add_sub} and {@code digits}, the bundled
 * models; {@code square} and {@code repeat}, which send as many responses as requested.
 */
final class Echo {
    private Echo() {}

    /** Starts the assembled server with these models. */
    static InstalledServer serve(Path directory, String... flags) throws IOException {
        Repository models = new Repository(directory);
        Sample.all()
                .forEach(sample ->
                        models.model(sample.model(), Repository.identity(0, sample.configType(), "[ -1 ]", "")));
        models.model("echo_batch", Repository.identity(8, "FP32", "[ -1 ]", ""));
        models.model("echo_one_string", Repository.identity(0, "STRING", "[ 1 ]", ""));
        models.copyOf(InstalledServer.MODELS.resolve("add_sub"));
        models.copyOf(InstalledServer.MODELS.resolve("digits"));
        Path examples = InstalledServer.CHECKOUT.resolve("examples/plugin-models");
        models.copyOf(examples.resolve("square"));
        models.copyOf(examples.resolve("repeat"));
        String[] all = new String[flags.length + 1];
        all[0] = "--backend-directory=" + InstalledServer.CHECKOUT.resolve("examples/plugins");
        System.arraycopy(flags, 0, all, 1, flags.length);
        return InstalledServer.serve(models.directory(), all);
    }
}
