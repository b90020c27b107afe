package dev.nereid.distribution;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class CommandRunnerTest {
    private final TestCommandContext process = new TestCommandContext(Map.of());

    @Test
    void printsItsVersion() {
        assertThat(process.run("--version")).isZero();

        assertThat(process.out()).isEqualTo("nereid 1.2.3\n");
        assertThat(process.err()).isEmpty();
    }

    @Test
    void printsHelpWithFlagsAndDefaults() {
        assertThat(process.run("serve", "--help")).isZero();

        assertThat(process.out())
                .contains("--model-repository=DIR", "--model-store", "--http-port=PORT", "Default: 8000")
                .contains("127.0.0.1", "--grpc-port=PORT", "--metrics-port=PORT", "--exit-timeout-secs=N")
                .contains("--allow-client-shm=BOOL", "--grpc-max-input-size=BYTES")
                .contains("--host-policy=POLICY,SETTING=VALUE");
        assertThat(process.err()).isEmpty();
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
            serve --wrong | nereid serve: --wrong: unknown flag; see nereid serve --help
            serve --wrong=1 | nereid serve: --wrong: unknown flag; see nereid serve --help
            serve models | nereid serve: 'models': unexpected (expected: flags only); see nereid serve --help
            serve --http-port=x | nereid serve: --http-port: 'x' (expected: a port from 0 to 65535, 0 for any that is free); see nereid serve --help
            serve --grpc-port 65536 | nereid serve: --grpc-port: '65536' (expected: a port from 0 to 65535, 0 for any that is free)
            serve --metrics-port=-1 | nereid serve: --metrics-port: '-1' (expected: a port from 0 to 65535, 0 for any that is free)
            serve --allow-http=0 --http-port=70000 --allow-grpc=0 --grpc-port=-1 --allow-metrics=0 --metrics-port=70000 | nereid serve: --model-repository: missing (expected: --model-repository=DIR)
            serve --allow-http=0 --http-use-ssl=1 --allow-grpc=0 --grpc-use-ssl=1 --http-address=no.where | nereid serve: --model-repository: missing (expected: --model-repository=DIR)
            serve --exit-on-error=yes | nereid serve: --exit-on-error: 'yes' (expected: true, on, 1, false, off or 0); see nereid serve --help
            serve --http-thread-count=0 | nereid serve: --http-thread-count: '0' (expected: a whole number, 1 or more); see nereid serve --help
            serve --http-max-input-size=0 | nereid serve: --http-max-input-size: '0' (expected: a number of bytes from 1 to 2147483647); see nereid serve --help
            serve --http-max-request-size=0 | nereid serve: --http-max-request-size: '0' (expected: a number of bytes, 1 or more); see nereid serve --help
            serve --http-header-forward-pattern=( | nereid serve: --http-header-forward-pattern: '(' (expected: a regular expression); see nereid serve --help
            serve --exit-timeout-secs=soon | nereid serve: --exit-timeout-secs: 'soon' (expected: a whole number of seconds); see nereid serve --help
            serve --model-control-mode=poll | nereid serve: --model-control-mode: 'poll' (expected: none, the only mode that this version has); see nereid serve --help
            serve --backend-config=x | nereid serve: --backend-config: 'x' (expected: --backend-config option format is '<backend name>,<setting>=<value>' or '<setting>=<value>'); see nereid serve --help
            serve --backend-config=,x=1 | nereid serve: --backend-config: ',x=1' (expected: --backend-config option format is '<backend name>,<setting>=<value>' or '<setting>=<value>'); see nereid serve --help
            serve --http-port | nereid serve: --http-port: missing (expected: --http-port=PORT); see nereid serve --help
            serve | nereid serve: --model-repository: missing (expected: --model-repository=DIR)
            serve --model-repository=nowhere | nereid serve: --model-repository: nowhere (expected: an existing directory)
            serve --model-store nowhere | nereid serve: --model-repository: nowhere (expected: an existing directory)
            serve --model-repository=src --backend-directory=nowhere | nereid serve: --backend-directory: nowhere (expected: an existing directory)
            serve --backend-config=x= | nereid serve: --backend-config: 'x=' (expected: --backend-config option format is '<backend name>,<setting>=<value>' or '<setting>=<value>'); see nereid serve --help
            serve --grpc-restricted-protocol=health | nereid serve: --grpc-restricted-protocol: 'health' (expected: group[,group...]:header=secret)
            serve --grpc-restricted-protocol=model-reposit,health:k=v --grpc-restricted-protocol=metadata,health:k=v | nereid serve: --grpc-restricted-protocol: unknown restricted protocol 'model-reposit' (expected: one of [health, metadata, inference, shared-memory, model-config, model-repository, statistics, trace, logging])
            serve --allow-grpc=0 --grpc-restricted-protocol=model-repository,health:k=v --grpc-restricted-protocol=metadata,health:k=v | nereid serve: --grpc-restricted-protocol: restricted protocol 'health' can not be specified in multiple config groups
            serve --grpc-header-forward-pattern=( | nereid serve: --grpc-header-forward-pattern: '(' (expected: a regular expression); see nereid serve --help
            serve --grpc-infer-thread-count=1 | nereid serve: --grpc-infer-thread-count: '1' (expected: a whole number from 2 to 128); see nereid serve --help
            serve --grpc-infer-allocation-pool-size=-1 | nereid serve: --grpc-infer-allocation-pool-size: '-1' (expected: a whole number, 0 or more); see nereid serve --help
            serve --grpc-max-input-size=0 | nereid serve: --grpc-max-input-size: '0' (expected: a number of bytes from 1 to 2147483647); see nereid serve --help
            serve --grpc-max-response-pool-size=0 | nereid serve: --grpc-max-response-pool-size: '0' (expected: a whole number, 1 or more); see nereid serve --help
            serve --grpc-infer-response-compression-level=max | nereid serve: --grpc-infer-response-compression-level: 'max' (expected: none, low, medium or high); see nereid serve --help
            serve --grpc-max-connection-age=-1 | nereid serve: --grpc-max-connection-age: '-1' (expected: a whole number of milliseconds, 0 or more); see nereid serve --help
            serve --model-repository=src --grpc-use-ssl=1 | nereid serve: --grpc-server-cert: missing (expected: --grpc-server-cert=FILE, required by --grpc-use-ssl)
            serve --model-repository=src --grpc-use-ssl=1 --grpc-server-cert=c | nereid serve: --grpc-server-key: missing (expected: --grpc-server-key=FILE, required by --grpc-use-ssl)
            serve --model-repository=src --grpc-use-ssl-mutual=1 --grpc-server-cert=c --grpc-server-key=k | nereid serve: --grpc-root-cert: missing (expected: --grpc-root-cert=FILE, required by --grpc-use-ssl)
            serve --model-repository=src --http-port=9 --grpc-port=9 | nereid serve: --grpc-port: 9 (expected: another port than --http-port)
            serve --model-repository=src --metrics-port=8000 | nereid serve: --metrics-port: 8000 (expected: another port than --http-port)
            serve --http-restricted-api=wealth:a=b | nereid serve: --http-restricted-api: unknown restricted api 'wealth' (expected: one of [health, metadata, inference, shared-memory, model-config, model-repository, statistics, trace, logging])
            serve --http-restricted-api=health:a=b --http-restricted-api=health:c=d | nereid serve: --http-restricted-api: restricted api 'health' can not be specified in multiple config groups
            serve --http-use-ssl=1 | nereid serve: --http-server-cert: missing (expected: --http-server-cert=FILE)
            serve --http-use-ssl=1 --http-server-cert=a | nereid serve: --http-server-key: missing (expected: --http-server-key=FILE)
            serve --http-use-ssl-mutual=1 --http-server-cert=a --http-server-key=b | nereid serve: --http-root-cert: missing (expected: --http-root-cert=FILE)
            serve --host-policy=cpu | nereid serve: --host-policy: 'cpu' (expected: policy,cpu-cores=0-3,8 or policy,numa-node=N); see nereid serve --help
            serve --log-warning=off | nereid serve: --log-warning: false (expected: true while --log-info is true)
            serve --log-info=0 --log-error=0 | nereid serve: --log-error: false (expected: true while --log-warning is true)
            demo --wrong | nereid demo: --wrong: unknown flag; see nereid demo --help
            serve --disable-auto-complete-config=1 | nereid serve: --disable-auto-complete-config: '1' (expected: no value); see nereid serve --help
            walk | nereid: 'walk': unknown command (expected: serve or demo); see nereid --help
            --wrong | nereid: '--wrong': unknown command (expected: serve or demo); see nereid --help
            """)
    void reportsInOneLineWhatIsWrong(String arguments, String line) {
        int status = process.run(arguments.split(" "));

        assertThat(status).isNotZero();
        assertThat(process.err()).isEqualTo(line + "\n");
        assertThat(process.out()).isEmpty();
    }

    @Test
    void requiresACommand() {
        assertThat(process.run()).isNotZero();

        assertThat(process.err()).isEqualTo("nereid: no command (expected: serve or demo); see nereid --help\n");
    }

    @Test
    void takesFlagsFromTheEnvironmentUnlessGiven() {
        TestCommandContext set = new TestCommandContext(Map.of("NEREID_HTTP_PORT", "x"));

        set.run("serve", "--model-repository=nowhere");
        set.run("serve", "--model-repository=nowhere", "--http-port=1");

        assertThat(set.err().lines())
                .containsExactly(
                        "nereid serve: --http-port: 'x' (expected: a port from 0 to 65535, 0 for any that is free);"
                                + " see nereid serve --help",
                        "nereid serve: --model-repository: nowhere (expected: an existing directory)");
    }

    @ParameterizedTest
    @CsvSource({
        "'', info warn",
        "--log-verbose=1, debug warn",
        "--log-verbose=2, trace warn",
        "--log-verbose=true, debug warn",
        "--log-info=FALSE, warn warn",
        "--log-info=Off --log-warning=0, error error",
        "--log-info=0 --log-warning=0 --log-error=0, off off",
    })
    void setsTheLevelsOfTheLogBeforeAnythingElse(String flags, String levels) {
        process.run(("serve --model-repository=nowhere " + flags).strip().split(" "));

        assertThat(process.logLevels).containsExactly(levels);
    }
}
