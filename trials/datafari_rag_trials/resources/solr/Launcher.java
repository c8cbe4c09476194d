import java.util.Properties;
import org.apache.solr.embedded.JettyConfig;
import org.apache.solr.embedded.JettySolrRunner;
import org.apache.zookeeper.server.ZooKeeperServerMain;

/**
 * Runs one Solr node from its own jars: java -cp 'classes:lib/*' Launcher SOLR_HOME PORT [ZK_HOST] [PID]. Loopback only.
 * With --zookeeper CONFIGURATION [PID] a ZooKeeper.
 */
public class Launcher {
  public static void main(String[] args) throws Exception {
    if (args[0].equals("--zookeeper")) {
      if (args.length > 2) {
        endWith(args[2]);
      }
      ZooKeeperServerMain.main(new String[] {args[1]});
      return;
    }
    Properties node = new Properties();
    if (args.length > 2 && !args[2].isEmpty()) {
      System.setProperty("zkHost", args[2]);
    }
    JettyConfig config = JettyConfig.builder().setPort(Integer.parseInt(args[1])).stopAtShutdown(false).build();
    JettySolrRunner runner = new JettySolrRunner(args[0], node, config);
    Runtime.getRuntime().addShutdownHook(new Thread(() -> stop(runner)));
    if (args.length > 3) {
      endWith(args[3]);
    }
    runner.start();
    Thread.currentThread().join();
  }

  /** Tests: end with the process that asked for it, even when that is killed without a chance to tidy up. */
  private static void endWith(String pid) {
    ProcessHandle.of(Long.parseLong(pid))
        .ifPresentOrElse(owner -> owner.onExit().thenRun(() -> System.exit(0)), () -> System.exit(0));
  }

  private static void stop(JettySolrRunner runner) {
    try {
      runner.stop();
    } catch (Exception error) {
      error.printStackTrace();
    }
  }
}
