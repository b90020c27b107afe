package dev.nereid.backend.python.process;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;

/**
 * How the process of an instance is started.
 *
 * @param instance the name of the instance, for threads and errors
 * @param python the command that runs Python, such as its path
 * @param environment the environment variables, all of them
 * @param runner the directory that has {@code nereid_python/__main__.py}
 * @param origin which Python and environment this is, for errors
 */
public record WorkerCommand(
        String instance, List<String> python, Map<String, String> environment, Path runner, String origin) {
    public WorkerCommand {
        python = List.copyOf(python);
        environment = Map.copyOf(environment);
    }
}
