/** Commands and options of zkCli.sh, and what to use here instead. */
export const ofZkCli: Readonly<Record<string, string>> = Object.assign(Object.create(null), {
  addWatch: '`watch`',
  addauth: 'the option --auth',
  delete: '`rm`',
  deleteall: '`rm -r`',
  rmr: '`rm -r`',
  del: '`rm`',
  getAcl: '`acl`',
  setAcl: '`acl PATH --set ACL`',
  getEphemerals: '`ephemerals`',
  ls2: '`ls --stat`',
  connect: 'the option --server',
  printwatches: '`watch`',
  status: '`srvr`',
  whoAmI: '`whoami`',
});
