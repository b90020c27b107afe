package dev.nereid.distribution.report;

import dev.nereid.plugin.BackendStatus;
import java.util.List;

/** Table of the installed backends. Static functions only. */
final class BackendTable {
    private BackendTable() {}

    /** Returns a row for each backend and for each broken plugin. */
    static TextTable of(List<BackendStatus> backends) {
        TextTable table = new TextTable("BACKEND", "PLUGIN", "STATE", "REASON");
        for (BackendStatus status : backends) {
            String name = status.backend().isEmpty() ? "-" : status.backend();
            table.add(name, status.plugin(), status.state().name(), status.reason());
        }
        return table;
    }
}
