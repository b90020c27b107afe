package dev.nereid.distribution.report;

import dev.nereid.server.PluginExtension;
import java.util.List;

/** Table of the installed repository agents and storages. Static functions only. */
final class ExtensionTable {
    private ExtensionTable() {}

    /** Returns a row for each; an empty text if there is none. */
    static String of(List<PluginExtension> extensions) {
        if (extensions.isEmpty()) {
            return "";
        }
        TextTable table = new TextTable("EXTENSION", "KIND", "PLUGIN");
        for (PluginExtension extension : extensions) {
            table.add(extension.name(), extension.kind().name(), extension.plugin());
        }
        return table + "\n";
    }
}
