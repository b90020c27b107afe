package dev.nereid.plugin;

import dev.nereid.plugin.jar.SpiVersion;
import java.io.Closeable;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Function;

/** The plugins of one server behind types of the JDK, for a test that has other classes of the server. */
public final class ServerOfAnyLoader implements Function<List<Path>, List<String>>, Closeable {
    private final List<BackendRegistry> open = new ArrayList<>();

    /** Opens a directory of plugins with a cache directory, and returns the reason or notice of each. */
    @Override
    public List<String> apply(List<Path> directories) {
        BackendRegistry registry = BackendRegistry.open(
                List.of(directories.getFirst()),
                List.of(),
                new PluginEnvironment(new SpiVersion(1, 0), Map.of(), directories.getLast(), 2, Map.of()));
        open.add(registry);
        return registry.statuses().stream().map(BackendStatus::reason).toList();
    }

    @Override
    public void close() {
        open.forEach(BackendRegistry::close);
    }
}
